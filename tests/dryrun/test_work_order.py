"""Vector clocks of streams and host say which work is done before what."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from syncscan.dryrun.work_order import DEFAULT, WorkOrder  # noqa: E402
from syncscan.model.race import RaceKind  # noqa: E402


def order() -> tuple[WorkOrder, int]:
    """An order with a second stream, and the number of that stream."""
    built = WorkOrder(lambda file: file == __file__)
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
    assert [race.kind for race in on.races.values()] == [RaceKind.UNORDERED_STREAMS]


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
    on, _ = order()
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
    assert sum(race.count for race in on.races.values()) == 5
