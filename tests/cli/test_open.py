"""`syncscan open`: the address is always said, since a browser that starts may yet show nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli.open import command
from tests.builder import TraceBuilder


@pytest.mark.parametrize(
    ("starts", "said"),
    [
        (True, "A browser was started; or open the address above."),
        (False, "No browser was found; open the address above."),
    ],
)
def test_the_address_is_always_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts: bool, said: str
) -> None:
    """Browsers that come as a snap or flatpak start and can't read the file that leads to it."""
    monkeypatch.setattr("webbrowser.open", lambda url: starts)
    monkeypatch.setattr("syncscan.cli.open._wait", lambda: None)
    trace = TraceBuilder().write(tmp_path / "trace.json")
    done = CliRunner().invoke(command, [str(trace)], catch_exceptions=False)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stderr.splitlines()[-2:] == [said, "Ctrl-C ends it."]
