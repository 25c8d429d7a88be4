"""A dry run's program reads the same times and the same entropy in each run; everybody else reads the real ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan.fixing.messages import ProgramJob
from syncscan.fixing.runs import Runs

TIMES = """\
import logging, time, uuid
from time import perf_counter
print(time.time(), time.time_ns(), perf_counter(), time.monotonic_ns(), time.process_time())
logging.basicConfig(format="%(asctime)s %(message)s")
logging.warning("started")
print(uuid.uuid1().time, uuid.uuid1().clock_seq)
"""
SEEDS = """\
import os, random, secrets, tempfile, threading, uuid
import numpy, torch
print(os.urandom(4), uuid.uuid4(), secrets.token_hex(4), random.SystemRandom().random(), random.Random().random())
random.seed()
numpy.random.seed()
print(random.random(), numpy.random.rand(), numpy.random.default_rng().random(), torch.seed(), torch.rand(1))
print(tempfile.mkdtemp())
thread = threading.Thread(target=lambda: print(os.urandom(4)))
thread.start()
thread.join()
"""


@pytest.fixture
def run(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Run a program, and return what it prints."""
    monkeypatch.chdir(tmp_path)

    def printed(source: str) -> str:
        Path("program.py").write_text(source)
        result = runs.run(ProgramJob(target="program.py", arguments=[]))
        assert result.code == 0, result.errors
        return result.printed + result.errors

    return printed


@pytest.mark.parametrize("source", [TIMES, SEEDS], ids=["times", "seeds"])
def test_two_runs_read_the_same(run: Callable[[str], str], source: str) -> None:
    assert run(source) == run(source)


def test_the_clock_goes_on(run: Callable[[str], str]) -> None:
    """With each reading, by what the thread sleeps, and never back; a loop that waits for a moment ends."""
    source = (
        "import time\nbegin = time.time()\nassert time.time() > begin\n"
        "time.sleep(0.05)\nassert 0.05 < time.time() - begin < 0.2\n"
        "while time.time() < begin + 30:\n    pass\n"
        "a, b = time.perf_counter(), time.perf_counter()\nassert 0 < b - a < 0.1\nprint('ended')\n"
    )
    assert run(source) == "ended\n"


def test_libraries_keep_the_real_clock(run: Callable[[str], str]) -> None:
    """Their timeouts last as long as they say."""
    source = (
        "import queue, threading, timeit\nevent, tasks = threading.Event(), queue.Queue()\n"
        "threading.Timer(0.2, event.set).start()\nassert event.wait(60)\n"
        "try:\n    tasks.get(timeout=0.05)\nexcept queue.Empty:\n    print('empty')\n"
        "print(timeit.Timer('pass').autorange()[0] > 1000)\n"
    )
    assert run(source) == "empty\nTrue\n"


def test_a_forked_process_has_names_of_its_own(run: Callable[[str], str]) -> None:
    """Two workers that ask for random bytes get different ones."""
    source = (
        "import os\nreads, writes = os.pipe()\nfor _ in range(2):\n    if os.fork() == 0:\n"
        "        os.write(writes, os.urandom(8))\n        os._exit(0)\n    os.wait()\n"
        "print(os.read(reads, 8) != os.read(reads, 8))\n"
    )
    assert run(source) == "True\n"
