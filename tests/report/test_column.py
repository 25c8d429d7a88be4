"""Frames need pandas, which isn't part of the installation that a CI job makes."""

from __future__ import annotations

import sys

import pytest

from syncscan.errors import MissingExtra
from syncscan.report.frames import finding_frame
from tests.report.example import typical


def test_without_pandas_a_frame_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The analysis itself doesn't need it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match="A frame needs pandas") as raised:
        finding_frame(typical())
    assert raised.value.hint == "Run: pip install 'pandas>=2.0,<4'."
