"""The script that an installation makes for a package's entry point has none of the program's lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.model.libraries import only_starts

PIP = """\
import re
import sys
from toylib.cli import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
UV = """\
import sys
from toylib.cli import main
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    sys.exit(main())
"""
SETUPTOOLS = """\
# EASY-INSTALL-ENTRY-SCRIPT: 'toylib','console_scripts','toy'
import sys
if __name__ == '__main__':
    sys.exit(load_entry_point('toylib', 'console_scripts', 'toy')())
"""
OWN = """\
import torch
for step in range(100):
    train(step)
"""


@pytest.mark.parametrize("text", [PIP, UV, SETUPTOOLS])
def test_a_script_that_only_calls_an_entry_point_starts_the_program(tmp_path: Path, text: str) -> None:
    """Whoever has written it."""
    script = tmp_path / "toy"
    script.write_text(f"#!/env/bin/python\n{text}")
    assert only_starts(str(script))


@pytest.mark.parametrize(("name", "text"), [("toy", OWN), ("toy.py", PIP)])
def test_a_script_with_lines_of_its_own_is_the_program(tmp_path: Path, name: str, text: str) -> None:
    """Also without a suffix; and a file of Python's is always somebody's."""
    script = tmp_path / name
    script.write_text(f"#!/env/bin/python\n{text}")
    assert not only_starts(str(script))


def test_what_isn_t_there_is_no_such_script() -> None:
    """As generated code; what Python runs modules with is none of the program's lines, nor a command of Windows's."""
    assert not only_starts("<string>")
    assert not only_starts("/nowhere/toy")
    assert only_starts("<frozen runpy>")
    assert only_starts("C:/env/Scripts/toy.exe/__main__.py")
