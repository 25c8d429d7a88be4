"""What stdout is: how wide, and whether it takes colours."""

from __future__ import annotations

import os
import shutil
import sys


def width() -> int:
    """Columns to write a report in: the terminal's, between 60 and 140; 100 where there is no terminal."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 140))


def colors() -> bool:
    """Whether to write colours: stdout is a terminal and NO_COLOR isn't set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
