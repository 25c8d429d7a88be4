"""Vector clocks of streams and host say which work is done before what."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syncscan.dryrun.program_paths import OwnLines  # noqa: E402
from syncscan.dryrun.work_order import DEFAULT, WorkOrder  # noqa: E402
from syncscan.model.race import RaceKind  # noqa: E402


def order() -> tuple[WorkOrder, int]:
    """An order with a second stream, and the number of that stream."""
    built = WorkOrder(OwnLines(lambda file: file == __file__).now)
    return built, built.new_stream()


def write(on: WorkOrder, stream: int, tensor: object) -> None:
    on.current = stream
    on.device_work(writes=(tensor,))


def test_work_of_one_stream_is_ordered() -> None:
    on, side = order()
    x = torch.zeros(4)
    write(on, side, x)
    write(on, side, x)
    assert on.races == {}


def test_work_of_two_streams_races() -> None:
    on, side = order()
    x = torch.zeros(4)
    write(on, DEFAULT, x)
    write(on, side, x)
    assert [kind for kind, _ in on.races] == [RaceKind.UNORDERED_STREAMS]


def test_a_wait_orders_through_a_third_stream() -> None:
    on, side = order()
    third = on.new_stream()
    x = torch.zeros(4)
    write(on, DEFAULT, x)
    on.stream_waits(on.mark(DEFAULT), third)
    on.stream_waits(on.mark(third), side)
    write(on, side, x)
    assert on.races == {}


def test_a_mark_holds_nothing_of_what_comes_after_it() -> None:
    on, side = order()
    x = torch.zeros(4)
    mark = on.mark(DEFAULT)
    write(on, DEFAULT, x)
    on.stream_waits(mark, side)
    write(on, side, x)
    assert len(on.races) == 1


def test_a_host_that_waited_for_all_has_no_open_copies() -> None:
    """Where the wait has no line of the program's, which it could protect."""
    on = WorkOrder(lambda: None)
    on.new_stream()
    on.current = DEFAULT
    on.copy_out(torch.zeros(4), torch.zeros(4))
    assert on.open_copies
    on.host_waits_for_device()
    assert not on.open_copies


def test_a_race_counts_how_often_it_came() -> None:
    on, side = order()
    x = torch.zeros(4)
    for _ in range(3):
        for stream in (DEFAULT, side):
            write(on, stream, x)
    assert sum(count for _, count in on.races.values()) == 5


def test_pinned_memory_may_be_freed_while_streams_copy_from_it() -> None:
    """The allocator of pinned memory hands it out again once the copies of all streams are done."""
    on, side = order()
    host = torch.zeros(4)
    on.copy_in(host)
    on.current = side
    on.copy_in(host)
    del host
    for on.current in (DEFAULT, side):
        on.device_work(allocated=(torch.zeros(4),))
    assert on.races == {}


def test_memory_filled_before_there_is_a_second_stream_belongs_to_the_first() -> None:
    """Its one access is known all the same: a stream that waits for nothing races with it."""
    on = WorkOrder(OwnLines(lambda file: file == __file__).now)
    x, y = torch.zeros(4), torch.zeros(4)
    on.device_work(allocated=(x,))
    on.host_waits_for_device()
    on.device_work(allocated=(y,))
    on.current = on.new_stream()
    on.device_work(reads=(x,))
    assert on.races == {}
    on.device_work(reads=(y,))
    assert len(on.races) == 1
