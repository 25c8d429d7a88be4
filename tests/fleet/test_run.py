"""A job's traces are read by processes of this machine, which may be killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import syncscan
from syncscan.errors import UsageError
from syncscan.fleet import pool
from syncscan.fleet.pool import outcomes, workers_for
from syncscan.fleet.run import analyze_fleet, run
from syncscan.fleet.worker import outcome_of
from syncscan.model.rank import decoded
from tests.fleet.small_ranks import rank_trace, write_ranks
from tests.load.nsys.test_nsys import two_ranks

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds its children in Linux's /proc")


def children() -> list[int]:
    """The processes that this one started."""
    matches: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # a thread that ends meanwhile has no file any more, and its children are another's
            matches += map(int, (task / "children").read_text().split())
    return matches


def kill_reader(fifo: Path, times: int) -> None:
    """Kill the one child as soon as it reads this, so often."""
    for _ in range(times):
        with fifo.open("wb"):  # waits for who reads it
            (reader,) = set(children()) - KNOWN
            os.kill(reader, signal.SIGKILL)
        while reader in children():  # until it is gone it holds the pipe open
            time.sleep(0.01)


KNOWN: set[int] = set()
"""Children that aren't the pool's."""


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    KNOWN.update(children())
    yield
    assert set(children()) <= KNOWN


def test_a_killed_process_and_a_damaged_trace_cost_themselves_alone(tmp_path: Path) -> None:
    """The others' ranks are those that they have by themselves."""
    first, last = write_ranks(tmp_path / "job")
    deadly, damaged = tmp_path / "job" / "deadly.json", tmp_path / "job" / "damaged.json"
    os.mkfifo(deadly)
    damaged.write_text("no trace")
    paths, messages = [first, str(deadly), str(damaged), last], []
    killer = threading.Thread(target=kill_reader, args=(deadly, pool.TIMES_KILLED))
    killer.start()
    ranks, unread = run(paths, jobs=1, progress=lambda *how: messages.append(how))
    killer.join()
    assert ranks == [decoded(outcome_of(path, {}, None).rank) for path in (first, last)]
    assert [u.path for u in unread] == [str(deadly), str(damaged)]
    assert "SIGKILL" in unread[0].reason
    assert messages == [(1, 0, 4, first), (2, 1, 4, str(damaged)), (3, 1, 4, last), (4, 2, 4, str(deadly))]


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    """Also one in the middle of a trace; the fixture looks for them."""
    (trace,) = write_ranks(tmp_path / "job", 1)
    endless = tmp_path / "endless.json"
    os.mkfifo(endless)

    def interrupted(*how: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([trace, str(endless)], jobs=2, progress=interrupted)


def test_what_is_too_large_for_its_share_gets_all_the_memory(tmp_path: Path) -> None:
    """Two that fit one after the other, but not side by side."""
    paths = [str(rank_trace(k, kernels=100).write(tmp_path / f"rank{k}.json")) for k in (0, 1)]
    assert outcome_of(paths[0], {}, 100_000).too_large
    result = dict(outcomes(paths, {}, 2, 200_000))
    assert [decoded(result[path].rank).rank for path in paths] == [0, 1]


def test_standard_input_is_no_rank() -> None:
    """The processes get their orders there."""
    with pytest.raises(UsageError, match="standard input"):
        run(["-"])


def test_as_many_processes_as_there_is_memory_for() -> None:
    """None has less than it needs by itself, unless it is asked for; each has an equal share."""
    assert workers_for(100, None, 10**6) == (1, 10**6)
    assert workers_for(100, 8, 8 * 10**9) == (8, 8 * 10**9)
    assert workers_for(3, 8, 10**9) == (3, 10**9)


def test_a_saved_analysis_stands_for_its_trace(tmp_path: Path) -> None:
    """It gives the same rank."""
    (trace,) = write_ranks(tmp_path, 1)
    saved = tmp_path / "rank0.syncscan.json"
    saved.write_text(syncscan.analyze(trace).to_saved())
    assert outcome_of(str(saved), {}, None).rank == outcome_of(trace, {}, None).rank


def test_a_fleet_may_be_one_file(tmp_path: Path) -> None:
    """An export of Nsight Systems with several processes."""
    path = two_ranks().save(tmp_path / "report.sqlite")
    assert [rank.of.path for rank in analyze_fleet(path).ranks] == [f"{path}/20", f"{path}/21"]
