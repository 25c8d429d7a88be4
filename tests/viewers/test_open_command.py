"""`syncscan open` shows a trace until it is told to end, and says where."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscan.cli import group
from syncscan.errors import UsageError
from syncscan.viewers.open_command import command, show
from tests.builder import TraceBuilder
from tests.report.example import typical

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@pytest.fixture(params=ENDING, ids=lambda number: number.name)
def number(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[signal.Signals]:
    """A signal that comes while a trace is shown."""
    before = signal.getsignal(request.param)
    monkeypatch.setattr(time, "sleep", lambda _: os.kill(os.getpid(), request.param))
    yield request.param
    signal.signal(request.param, before)


def recorded() -> TraceBuilder:
    """A trace that holds something."""
    t = TraceBuilder()
    t.op("aten::add", 0, 1)
    return t


def test_a_signal_ends_what_is_shown(tmp_path: Path, number: signal.Signals) -> None:
    """As asked: that is no error."""
    path = recorded().write(tmp_path / "t.json")
    done = CliRunner().invoke(group, ["open", str(path), "--no-browser"])
    assert (done.exit_code, done.exception) == (0, None)
    assert done.stderr.endswith("Ctrl-C ends it.\n")


def test_a_signal_that_a_script_handles(number: signal.Signals) -> None:
    """Its handler, left behind by a script that was profiled, would keep what is shown from ending; it is back then."""
    came: list[int] = []

    def note(number: int, frame: object) -> None:
        came.append(number)

    signal.signal(number, note)
    show(typical(), "t.json", browse=False)
    assert came == []
    assert signal.getsignal(number) is note


def test_where_there_is_one_signal_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no SIGHUP."""

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.delattr(signal, "SIGHUP")
    monkeypatch.setattr(time, "sleep", interrupted)
    show(typical(), "t.json", browse=False)


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        (True, "A browser was started; or open the address above."),
        (False, "No browser was found; open the address above."),
    ],
)
def test_the_address_is_always_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starts: bool, text: str
) -> None:
    """Browsers that come as a snap or flatpak start and can't read the file that leads to it."""
    monkeypatch.setattr("webbrowser.open", lambda url: starts)
    monkeypatch.setattr("syncscan.viewers.open_command._wait", lambda: None)
    trace = recorded().write(tmp_path / "trace.json")
    done = CliRunner().invoke(command, [str(trace)], catch_exceptions=False)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.stderr.splitlines()[-2:] == [text, "Ctrl-C ends it."]


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="pipes have no names here")
def test_a_report_is_shown_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """`syncscan open <(zcat t.json.gz)`: a report is made of one reading."""
    monkeypatch.setattr("syncscan.viewers.open_command._wait", lambda: None)
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as end:
        end.write(recorded().json())
    done = CliRunner().invoke(group, ["open", f"/dev/fd/{read_end}", "--no-browser"], catch_exceptions=False)
    os.close(read_end)
    assert done.exit_code == 0
    assert done.stdout.startswith("http://127.0.0.1:")


def test_a_folder_with_several_traces_is_not_shown(tmp_path: Path) -> None:
    """One of them is to be named; a folder with one is that one."""
    for name in ("a.json", "b.json"):
        recorded().write(tmp_path / name)
    done = CliRunner().invoke(group, ["open", str(tmp_path), "--no-browser"])
    assert isinstance(done.exception, UsageError)
    assert "open takes one trace; 2 were given" in str(done.exception)
