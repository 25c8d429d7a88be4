"""Whatever becomes of the streams, the disk or the process: a sentence, no frames, nothing half-written left behind."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from syncscan.cli import main
from tests.offered import offered
from tests.until import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="devices and signals as Linux has them")
COMMAND = (sys.executable, "-m", "syncscan")
CLEARED = "no partial output is left"
WRITERS = ("analyze", "whatif", "report", "annotate", "repair")


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line with `$S` as the command."""
    line = line.replace("$S", f"'{sys.executable}' -m syncscan")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=folder, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


Called = Callable[..., tuple[int, str]]


@pytest.fixture
def called(trace: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    """Exit code and stderr of a command in this process, beside the trace; `stdin` is a file for standard input."""
    monkeypatch.chdir(trace.parent)

    def call(line: str, stdin: str = os.devnull) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["syncscan", *shlex.split(line)])
        text = io.StringIO()
        with _standard_input(stdin), contextlib.redirect_stderr(text), pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), text.getvalue()

    return call


@contextlib.contextmanager
def _standard_input(name: str) -> Iterator[None]:
    stored, sys_stdin = os.dup(0), sys.stdin
    try:
        with open(name) as sys.stdin:
            os.dup2(sys.stdin.fileno(), 0)
            yield
    finally:
        sys.stdin = sys_stdin
        os.dup2(stored, 0)
        os.close(stored)


@pytest.mark.parametrize(
    "command", ["analyze T", *(pytest.param(words, marks=pytest.mark.slow) for words in ("report T -o -", "explain"))]
)
@pytest.mark.parametrize(
    ("to", "text"), [(">/dev/full", "No space left on device"), (">&-", "standard output is closed")]
)
def test_a_result_that_cannot_be_printed(trace: Path, command: str, to: str, text: str) -> None:
    """One sentence and an exit code of its own."""
    done = shell(f"$S {command.replace('T', trace.name)} {to}", trace.parent)
    assert done.returncode == 1
    assert done.stderr.rstrip().splitlines()[-1] == f"syncscan: {text}."
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["report T -o -"])
def test_a_reader_that_goes_away_is_no_error(trace: Path, command: str) -> None:
    """`| head` needs no more of it."""
    done = shell(f"$S {command.replace('T', trace.name)} | true", trace.parent)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_closed_stderr(trace: Path) -> None:
    """Messages are dropped, and the result is the same."""
    assert "torch.nonzero" in shell(f"$S analyze {trace.name} 2>&-", trace.parent).stdout


@pytest.mark.parametrize("command", ["analyze -", pytest.param("repair - -o out", marks=pytest.mark.slow)])
def test_a_closed_stdin_is_an_empty_one(tmp_path: Path, command: str) -> None:
    """There is no trace in it, and that is said."""
    closed, empty = shell(f"$S {command} <&-", tmp_path), shell(f"$S {command} </dev/null", tmp_path)
    assert empty.returncode == 3
    assert (closed.returncode, closed.stderr) == (empty.returncode, empty.stderr)


def test_no_file_takes_the_number_of_a_closed_stream(trace: Path) -> None:
    """With all three closed a result still lands in its file, whole, and nothing else in it."""
    done = shell(f"$S analyze {trace.name} --format json -o out.json <&- >&- 2>&-", trace.parent)
    assert done.returncode == 0
    assert (trace.parent / "out.json").read_text().startswith("{")


@pytest.mark.parametrize("command", offered(WRITERS, str))
@pytest.mark.parametrize("out", ["T", "link"])
def test_the_trace_itself_is_never_replaced(trace: Path, called: Called, command: str, out: str) -> None:
    """Not by --force, and not under another name of the same file, which is a URL or standard input as well."""
    before = trace.read_bytes()
    (trace.parent / "link").symlink_to(trace)
    for source in (trace.name, f"file://{trace}", f"local://{trace.name}", "-"):
        code, text = called(f"{command} -o {out.replace('T', trace.name)} --force {source}", stdin=trace.name)
        assert code == 2
        # `annotate` reads a trace twice, and takes none from standard input
        assert "is the trace itself" in text or (command, source) == ("annotate", "-")
        assert trace.read_bytes() == before


@pytest.mark.parametrize("command", offered(WRITERS, str))
def test_places_that_take_no_file(trace: Path, called: Called, command: str) -> None:
    """Each is said in two lines and exits with 2; what a name holds doesn't reach the terminal."""
    for out in (".", "n" * 300, "/dev/full", "none/out", "'a\x1b[2Jb'/c"):
        code, text = called(f"{command} {trace.name} -o {out} --force")
        assert (code, "\x1b" in text) == (2, False)
        assert len([line for line in text.splitlines() if line]) >= 2


def test_a_name_of_escapes_is_harmless(trace: Path) -> None:
    """The report of written files shows their names without the escapes."""
    done = shell(f"$S analyze {trace.name} -o $'a\\x1b[2Jb'", trace.parent)
    assert done.stderr.splitlines()[-1] == "Wrote a\ufffd[2Jb."
    assert (trace.parent / "a\x1b[2Jb").is_file()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """A file that was being written is gone when a signal ends the command, which says what ended it."""
    source = tmp_path / "pipe"
    os.mkfifo(source)
    args = [*COMMAND, "repair", str(source), "-o", str(tmp_path / "out.json")]
    pipes = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(args, env=_environment(), **pipes) as process, source.open("wb") as pipe:
        pipe.write(b'{"traceEvents": [' + b'{"ph": "X", "ts": 1},' * 200_000)
        pipe.flush()
        until(lambda: any(p.name.startswith(".syncscan-") for p in tmp_path.iterdir()))
        until(lambda: _reads_on(process, pipe))  # a signal just before would only be seen at the next byte
        process.send_signal(number)
        assert process.wait(120) not in (0, 2, 3)
        text = process.stderr.read()
    stopped = f"syncscan: stopped by {number.name}; {CLEARED}."
    assert text.strip() == ("Aborted!" if number == signal.SIGINT else stopped)
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def _reads_on(process: subprocess.Popen[str], pipe: BinaryIO) -> bool:
    """Whether a process has read all that a pipe holds, and sleeps until more comes."""
    unread = fcntl.ioctl(pipe, termios.FIONREAD, bytes(4))
    return unread == bytes(4) and ") S " in Path(f"/proc/{process.pid}/stat").read_text()


def test_a_disk_that_is_full(trace: Path) -> None:
    """Said in a sentence; the file that was there stays as it was. A limit on the size of files stands for the disk."""
    out = trace.parent / "out.html"
    out.write_text("before")
    done = shell(f"ulimit -f 8; trap '' XFSZ; $S report {trace.name} -o out.html --force", trace.parent)
    assert done.returncode == 2
    assert "can't be written" in done.stderr
    assert out.read_text() == "before"
    assert sorted(p.name for p in trace.parent.iterdir()) == ["out.html", trace.name]
