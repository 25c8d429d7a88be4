"""A process answers, is read away, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.proof.running_process import ChildProcess, marked

ANSWER = """
import os, sys, json, subprocess
orders, answers = (int(n) for n in sys.argv[1:])
say = lambda what: os.write(answers, json.dumps(what).encode() + b"\\n")
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    started: list[ChildProcess] = []

    def start(code: str) -> ChildProcess:
        started.append(ChildProcess([sys.executable, "-S", "-c", ANSWER + code], tmp_path, os.environ))
        return started[-1]

    yield start
    for process in started:
        process.end(0)


def soon() -> float:
    return time.monotonic() + 120


def test_orders_and_answers_are_lines(start) -> None:  # type: ignore[no-untyped-def]
    """However much the program prints beside them; the end of that is kept."""
    process = start("print('x' * 10**6 + 'end'); say({'got': json.loads(os.read(orders, 99))})")
    process.send({"steps": 3})
    assert process.receive(soon()) == {"got": {"steps": 3}}
    assert process.receive(soon()) is None
    assert process.end() == 0
    assert process.end_of_output().endswith("xend")
    assert len(process.end_of_output()) < 50_000


def test_nothing_that_it_started_is_left(start) -> None:  # type: ignore[no-untyped-def]
    """Neither what is in its group nor what left that, and it isn't waited for."""
    process = start(
        "a = subprocess.Popen(['sleep', '60']); b = subprocess.Popen(['sleep', '60'], start_new_session=True);"
        "say([a.pid, b.pid])"
    )
    pids = process.receive(soon())
    process.end()
    deadline = soon()
    while any(Path(f"/proc/{pid}/environ").exists() and _runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [pid for pid in pids if _runs(pid)] == []


def _runs(pid: int) -> bool:
    """Whether it is there and no zombie, which only waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_is_waited_for_until_the_deadline_and_no_longer(start) -> None:  # type: ignore[no-untyped-def]
    """A program that never answers is ended."""
    process = start("import time; time.sleep(60)")
    with pytest.raises(TimeoutError):
        process.receive(time.monotonic() + 0.05)
    assert process.end(0) == -9


def test_it_has_nothing_to_read_on_stdin(start) -> None:  # type: ignore[no-untyped-def]
    """A program that asks fails, and doesn't hang."""
    process = start("input('name? ')")
    assert process.receive(soon()) is None
    assert process.end() == 1
    assert "EOFError" in process.end_of_output()


def test_other_processes_carry_no_mark() -> None:
    """A mark that nobody has finds none."""
    assert marked("no such mark") == []
