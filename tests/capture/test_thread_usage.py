"""Facts about what a step's thread and others used between two ticks: read from the system's clocks, in any thread."""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from syncscan.capture import thread_usage
from syncscan.capture.thread_usage import Meter, Read, UsageDifference, between, ran
from tests.until import until

linux = pytest.mark.skipif(sys.platform != "linux", reason="samples on Linux alone")
PAGES = 2000


def read(at: int, cpu: int, faults: int = 0, system: int = 0, **others: int) -> Read:
    return Read(at, cpu, faults, system, {int(thread[1:]): ns for thread, ns in others.items()}, {})


def count_until(over: threading.Event) -> None:
    while not over.is_set():
        sum(range(1000))


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def counting() -> Iterator[threading.Thread]:
    """Another thread that runs Python all the while."""
    over = threading.Event()
    thread = threading.Thread(target=count_until, args=(over,), name="counter")
    thread.start()
    yield thread
    over.set()
    thread.join()


def test_what_is_off_its_core_while_others_run_was_stopped_at_most() -> None:
    """Another thread ran for 8 of 10 µs off its core; in the second part no thread did."""
    first, second = between([read(0, 0, t7=0), read(15, 5, t7=8), read(20, 6, t7=8)])
    assert (first.off, first.stopped, second.off, second.stopped) == (10, 8, 4, 0)


def test_a_clock_that_is_behind_is_not_time_off_its_core() -> None:
    """The core's clock and the wall's are read one after the other."""
    (part,) = between([read(10, 10), read(14, 15)])
    assert part.off == 0


def test_a_thread_counts_from_its_second_read_on() -> None:
    """Nobody measured what the thread used before it was followed."""
    (part,) = between([read(0, 0), read(10, 1, t7=5000)])
    assert part.ran == {}


def test_others_are_reported_with_what_they_ran_beside() -> None:
    """No more of it than the step's thread was off its core."""
    parts = [
        UsageDifference(wall=10, off=4, ran={7: 6, 8: 1}, faults=0, system=0),
        UsageDifference(10, 0, {7: 2}, 0, 0),
    ]
    assert ran(parts) == {7: (8, 4), 8: (1, 1)}


def test_the_systems_time_counts_where_pages_were_touched() -> None:
    """Elsewhere it is for something else."""
    touching, not_touching = between([read(0, 0), read(9, 9, faults=3, system=5), read(19, 19, faults=3, system=9)])
    assert (touching.touching, not_touching.touching) == (5, 0)


@linux
def test_fresh_pages_are_counted_in_the_thread_that_touches_them(meter: Meter) -> None:
    """Each once; the second time none."""
    with mmap.mmap(-1, PAGES * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
        fresh.madvise(mmap.MADV_NOHUGEPAGE)
        before = meter.start()
        fresh[::4096] = bytes(PAGES)
        touched = meter.read()
        fresh[::4096] = bytes(PAGES)
        again = meter.read()
    first, second = between([before, touched, again])
    assert PAGES <= first.faults <= PAGES + 100
    assert second.faults < 100


@linux
def test_a_page_has_a_price_on_this_machine(meter: Meter) -> None:
    """Which is measured as it starts."""
    meter.start()
    assert (meter.fault_ns() or 0) > 0


@linux
def test_a_thread_that_runs_is_met_by_name_and_place(meter: Meter, counting: threading.Thread) -> None:
    """Its time on the core, and the function that it is in."""
    native = counting.native_id or 0
    reads = [meter.start()]

    def met() -> bool:
        reads.append(meter.read())
        places = {code.co_name for read in reads for code in read.stacks.get(native, [])[::2]}
        return "count_until" in places and ran(between(reads)).get(native, (0, 0))[0] > 0

    until(met)
    assert meter.names[native] == "counter"


@linux
def test_a_thread_that_has_ended_is_left_out(meter: Meter) -> None:
    """Its clock is gone, as soon as the system has cleared it away."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    first = meter.start()
    over.set()
    thread.join()
    assert thread.native_id in first.others
    until(lambda: not Path(f"/proc/self/task/{thread.native_id}").exists())
    assert thread.native_id not in meter.read().others


@linux
def test_without_the_lock_nobody_is_followed(
    meter: Meter, counting: threading.Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads don't exclude each other there."""
    monkeypatch.setattr(thread_usage, "_locked", lambda: False)
    assert meter.start().others == {}


@linux
def test_what_the_system_does_not_report_is_not_reported(meter: Meter, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its files: who waited for a core, and huge pages."""

    def gone(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", gone)
    meter.start()
    assert (meter.delayed_ns(), meter.huge_pages()) == (None, None)
