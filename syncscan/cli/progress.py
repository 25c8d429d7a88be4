"""A progress bar on stderr while a big trace is read, or a copy of it written, if stderr is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

BIG = 30_000_000
"""Size in bytes from which reading takes long enough to be watched."""

Progress = Callable[[int, int], None]


@contextmanager
def reading(path: str, what: str = "reading") -> Iterator[Progress | None]:
    """Give a callback `(bytes read, bytes in all)` that draws a bar; None where none is wanted.

    Args:
        path: of the trace.
        what: what is done meanwhile, said beside the bar.
    """
    # Path.is_file raises for names that are too long.
    if not sys.stderr.isatty() or not os.path.isfile(path) or Path(path).stat().st_size < BIG:  # noqa: PTH113
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    with Bar(
        TextColumn(what), BarColumn(), DownloadColumn(), console=console, transient=True, auto_refresh=False
    ) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total, refresh=True)
