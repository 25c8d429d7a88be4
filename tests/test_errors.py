"""Packages that errors say to install can be installed, wherever syncscan itself comes from."""

from __future__ import annotations

import re
from pathlib import Path

from syncscan.errors import EXTRAS, installing
from tests.each import each

ROOT = Path(__file__).parent.parent


@each("extra", EXTRAS)
def test_what_is_to_be_installed_is_what_the_extra_needs(extra: str) -> None:
    """By the packages' own names: syncscan may be a clone that no package index has."""
    needed = re.search(rf"^{extra} = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert needed
    assert installing(extra) == "pip install " + needed[1].replace('"', "'").replace(", ", " ")


def test_no_text_sends_anybody_to_an_index_for_syncscan() -> None:
    """Neither code nor documents."""
    texts = [*ROOT.joinpath("syncscan").rglob("*.py"), *ROOT.joinpath("docs").rglob("*.md"), ROOT / "README.md"]
    assert [str(t) for t in texts if "'syncscan[" in t.read_text() or "install syncscan" in t.read_text()] == []
