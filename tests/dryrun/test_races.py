"""A dry run finds uses of memory that nothing orders, and is silent where something does: pairs, wrong and right."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import syncscan
from syncscan.model.race import RaceKind

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

READ, WRITE = RaceKind.READ_BEFORE_COPY, RaceKind.WRITE_BEFORE_COPY
STREAMS, FREED = RaceKind.UNORDERED_STREAMS, RaceKind.FREED_IN_USE
Program = Callable[[], Any]
PAIRS: list[tuple[RaceKind, Program, Program]] = []
"""Kind, a program that races, and the program that looks like it and doesn't."""


def pair(kind: RaceKind, right: Program) -> Callable[[Program], Program]:
    """Note a wrong program beside its right form."""

    def noted(wrong: Program) -> Program:
        PAIRS.append((kind, wrong, right))
        return wrong

    return noted


def races_in(program: Program) -> list[tuple[RaceKind, str]]:
    """Return kind and function of each race of a program."""
    with syncscan.pretend_gpu() as rec:
        program()
    return [(race.kind, race.second.function) for race in rec.analysis.races]


def device(n: int = 64) -> Any:
    return torch.ones(n, device="cuda")


def pinned(n: int = 64) -> Any:
    return torch.zeros(n).pin_memory()


# reads before a copy to the host is done


def read_after_synchronize() -> None:
    host = device().to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    host.sum()


@pair(READ, read_after_synchronize)
def read_at_once() -> None:
    host = device().to("cpu", non_blocking=True)
    host.sum()


def item_after_event() -> None:
    host = device().sum().to("cpu", non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    done.synchronize()
    host.item()


@pair(READ, item_after_event)
def item_after_event_recorded_too_early() -> None:
    done = torch.cuda.Event()
    done.record()
    host = device().sum().to("cpu", non_blocking=True)
    done.synchronize()
    host.item()


def read_after_blocking_copy() -> None:
    host = device().cpu()
    host.tolist()


@pair(READ, read_after_blocking_copy)
def tolist_at_once() -> None:
    device().to("cpu", non_blocking=True).tolist()


def array_read_after_synchronize() -> None:
    array = device().to("cpu", non_blocking=True).numpy()
    torch.cuda.synchronize()
    array.sum()


@pair(READ, array_read_after_synchronize)
def array_read_before_synchronize() -> None:
    array = device().to("cpu", non_blocking=True).numpy()
    array.sum()
    torch.cuda.synchronize()


def pageable_target() -> None:
    """The driver has copied to pageable memory when the call returns."""
    host = torch.empty(64)
    host.copy_(device(), non_blocking=True)
    host.sum()


@pair(READ, pageable_target)
def pinned_target() -> None:
    host = pinned()
    host.copy_(device(), non_blocking=True)
    host.sum()


def view_of_another_part() -> None:
    host = pinned()
    host[:32].copy_(device(32), non_blocking=True)
    host[32:].sum()


@pair(READ, view_of_another_part)
def view_of_what_is_copied() -> None:
    host = pinned()
    host[:32].copy_(device(32), non_blocking=True)
    host[16:48].sum()


def printed_after_stream_synchronize() -> None:
    host = device(4).to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    str(host)


@pair(READ, printed_after_stream_synchronize)
def printed_at_once() -> None:
    str(device(4).to("cpu", non_blocking=True))


def copied_behind_an_item() -> None:
    """`.item()` waits for the stream, and with it for the copy before it."""
    x = device()
    host = x.to("cpu", non_blocking=True)
    x.sum().item()
    host.sum()


@pair(READ, copied_behind_an_item)
def copied_after_an_item() -> None:
    x = device()
    x.sum().item()
    host = x.to("cpu", non_blocking=True)
    host.sum()


def saved_after_synchronize() -> None:
    host = device().to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    pickle.dumps(host.numpy())


@pair(READ, saved_after_synchronize)
def saved_at_once() -> None:
    pickle.dumps(device().to("cpu", non_blocking=True).numpy())


def copied_on_a_stream_that_is_awaited() -> None:
    x, side = device(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host = x.to("cpu", non_blocking=True)
    side.synchronize()
    host.sum()


@pair(READ, copied_on_a_stream_that_is_awaited)
def another_stream_is_awaited() -> None:
    x, side = device(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host = x.to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    host.sum()


# writes before a copy from the host is done


def refilled_after_event() -> None:
    host, x = pinned(), device()
    for _ in range(2):
        x.copy_(host, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        done.synchronize()
        host.fill_(1)


@pair(WRITE, refilled_after_event)
def refilled_at_once() -> None:
    host, x = pinned(), device()
    for _ in range(2):
        x.copy_(host, non_blocking=True)
        host.fill_(1)


def refilled_pageable() -> None:
    """The driver has taken what a small pageable tensor holds when the call returns."""
    host = torch.zeros(64)
    host.to("cuda", non_blocking=True)
    host.fill_(1)


@pair(WRITE, refilled_pageable)
def refilled_pinned() -> None:
    host = pinned()
    host.to("cuda", non_blocking=True)
    host.add_(1)


def two_buffers_in_turn() -> None:
    buffers, events = [pinned(), pinned()], [torch.cuda.Event(), torch.cuda.Event()]
    for i in range(6):
        events[i % 2].synchronize()
        buffers[i % 2].fill_(i)
        buffers[i % 2].to("cuda", non_blocking=True)
        events[i % 2].record()


@pair(WRITE, two_buffers_in_turn)
def events_recorded_before_their_copies() -> None:
    buffers, events = [pinned(), pinned()], [torch.cuda.Event(), torch.cuda.Event()]
    for i in range(6):
        events[i % 2].synchronize()
        buffers[i % 2].fill_(i)
        events[i % 2].record()
        buffers[i % 2].to("cuda", non_blocking=True)


def new_pinned_memory_each_time() -> None:
    """Pinned memory that is freed is handed out again when its copy is done: the allocator sees to that."""
    for i in range(3):
        host = pinned()
        host.fill_(i)
        host.to("cuda", non_blocking=True)


@pair(WRITE, new_pinned_memory_each_time)
def one_pinned_memory_each_time() -> None:
    host = pinned()
    for i in range(3):
        host.fill_(i)
        host.to("cuda", non_blocking=True)


def other_half_is_refilled() -> None:
    host = pinned()
    host[:32].to("cuda", non_blocking=True)
    host[32:].fill_(1)


@pair(WRITE, other_half_is_refilled)
def same_half_is_refilled() -> None:
    host = pinned()
    host[:32].to("cuda", non_blocking=True)
    host[:8].fill_(1)


# two streams


def side_stream_waits() -> None:
    x, side = device(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.sum()


@pair(STREAMS, side_stream_waits)
def side_stream_does_not_wait() -> None:
    x, side = device(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.sum()


def result_awaited_by_event() -> None:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        y = device() * 2
        done.record()
    torch.cuda.current_stream().wait_event(done)
    y.sum()
    y.record_stream(torch.cuda.current_stream())


@pair(STREAMS, result_awaited_by_event)
def event_of_the_wrong_stream() -> None:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        y = device() * 2
    done.record()
    torch.cuda.current_stream().wait_event(done)
    y.sum()
    torch.cuda.synchronize()


def overwritten_after_a_wait() -> None:
    x, side = device(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.sum()
    torch.cuda.current_stream().wait_stream(side)
    x.zero_()


@pair(STREAMS, overwritten_after_a_wait)
def overwritten_while_read() -> None:
    x, side = device(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x.sum()
    x.zero_()


def host_waited_in_between() -> None:
    """The host knows the work to be done, and launches after it."""
    x, side = device(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        x.sum()


@pair(STREAMS, host_waited_in_between)
def host_waited_too_early() -> None:
    torch.cuda.synchronize()
    x, side = device(), torch.cuda.Stream()
    with torch.cuda.stream(side):
        x.sum()


def halves_on_two_streams() -> None:
    x, sides = torch.zeros(64, device="cuda"), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x[32 * i : 32 * (i + 1)].add_(1)
    for side in sides:
        torch.cuda.current_stream().wait_stream(side)
    x.sum()


@pair(STREAMS, halves_on_two_streams)
def halves_that_overlap() -> None:
    x, sides = torch.zeros(64, device="cuda"), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x[31 * i : 31 * i + 33].add_(1)
    for side in sides:
        torch.cuda.current_stream().wait_stream(side)


def columns_on_two_streams() -> None:
    x, sides = torch.zeros(8, 2, device="cuda"), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x[:, i].add_(1)


@pair(STREAMS, columns_on_two_streams)
def one_column_on_two_streams() -> None:
    x, sides = torch.zeros(8, 2, device="cuda"), [torch.cuda.Stream(), torch.cuda.Stream()]
    for side in sides:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x[:, 0].add_(1)


def graph_input_after_a_wait() -> None:
    x, side, graph = device(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul(2)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        graph.replay()
    torch.cuda.current_stream().wait_stream(side)
    x.fill_(3)


@pair(STREAMS, graph_input_after_a_wait)
def graph_input_during_a_replay() -> None:
    x, side, graph = device(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul(2)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        graph.replay()
    x.fill_(3)


# memory that is handed back


def freed_with_record_stream() -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = device() * 2
    torch.cuda.current_stream().wait_stream(side)
    y.sum()
    y.record_stream(torch.cuda.current_stream())
    del y
    with torch.cuda.stream(side):
        device()


@pair(FREED, freed_with_record_stream)
def freed_without_record_stream() -> None:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = device() * 2
    torch.cuda.current_stream().wait_stream(side)
    y.sum()
    del y
    with torch.cuda.stream(side):
        device()


def home_stream_waits_before_it_allocates() -> None:
    side = torch.cuda.Stream()
    for _ in range(2):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = device() * 2
        torch.cuda.current_stream().wait_stream(side)
        y.sum()
        del y


@pair(FREED, home_stream_waits_before_it_allocates)
def home_stream_allocates_before_it_waits() -> None:
    side = torch.cuda.Stream()
    for _ in range(2):
        with torch.cuda.stream(side):
            y = device() * 2
        side.wait_stream(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(side)
        y.sum()
        del y


@pytest.mark.parametrize(("kind", "wrong", "right"), PAIRS, ids=[wrong.__name__ for _, wrong, _ in PAIRS])
def test_a_race_is_found_and_its_right_form_is_none(kind: RaceKind, wrong: Program, right: Program) -> None:
    """The wrong program has races of one kind, at its own lines; the right one none."""
    assert {found for found, _ in races_in(wrong)} == {kind}
    assert {function for _, function in races_in(wrong)} == {wrong.__name__}
    assert races_in(right) == []


def test_there_are_twenty_pairs_and_more() -> None:
    assert len(PAIRS) >= 20


def test_a_training_step_has_no_races() -> None:
    """Forward on the default stream, backward, fused optimizer, prefetch on a side stream that is ordered."""

    def train() -> None:
        model, side = torch.nn.Linear(8, 8).cuda(), torch.cuda.Stream()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                batch = torch.zeros(4, 8).pin_memory().to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            batch.record_stream(torch.cuda.current_stream())
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()

    assert races_in(train) == []


def test_a_backward_pass_on_a_side_stream_has_no_races() -> None:
    """Autograd orders the streams of its nodes itself."""

    def train() -> None:
        model, side = torch.nn.Linear(8, 8).cuda(), torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss = model(torch.ones(4, 8, device="cuda")).sum()
        torch.cuda.current_stream().wait_stream(side)
        loss.backward()

    assert races_in(train) == []


def test_a_race_is_placed_at_both_lines() -> None:
    with syncscan.pretend_gpu() as rec:
        host = device().to("cpu", non_blocking=True)
        host.sum()
        host.sum()
    first, second = sorted(rec.analysis.races, key=lambda race: race.second.line)
    assert first.first == second.first
    assert (first.second.line - first.first.line, second.second.line - first.first.line) == (1, 2)  # type: ignore[union-attr]
    assert first.id != second.id
