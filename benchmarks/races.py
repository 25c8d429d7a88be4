"""Programs that race beside their right forms; on a GPU, whether the wrong ones really read wrong numbers.

    python -m benchmarks.races [--runs 5]

Each program gets a function that keeps the current stream busy and a number, and returns what it read, which should be
that number. On a GPU the function spins for 20 ms, so that a race is seen: a wrong program has to return another number
at least once, a right one never. The tests run both dry. Prints a table; exits with 1 where one isn't as it should be.
"""

from __future__ import annotations

import argparse
import importlib
import math
import pickle
import sys
from typing import Any

from benchmarks.race_programs.pairs import (
    FREED,
    PAIRS,
    READ,
    STREAMS,
    WRITE,
    Program,
    Spin,
    awaited,
    device,
    pair,
    pinned,
)

torch: Any = importlib.import_module("torch")
CYCLES = 40_000_000
"""Some 20 ms at 2 GHz."""


# reads before a copy to the host is done


def read_after_synchronize(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return host.mean()


@pair(READ, read_after_synchronize)
def read_at_once(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    return host.mean()


def item_after_event(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).mean().to("cpu", non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    done.synchronize()
    return host.item()


@pair(READ, item_after_event)
def item_after_event_recorded_too_early(spin: Spin, k: float) -> Any:
    done = torch.cuda.Event()
    done.record()
    spin()
    host = device(k).mean().to("cpu", non_blocking=True)
    done.synchronize()
    return host.item()


def read_after_blocking_copy(spin: Spin, k: float) -> Any:
    spin()
    return device(k).cpu().tolist()[0]


@pair(READ, read_after_blocking_copy)
def tolist_at_once(spin: Spin, k: float) -> Any:
    spin()
    return device(k).to("cpu", non_blocking=True).tolist()[0]


def array_read_after_synchronize(spin: Spin, k: float) -> Any:
    spin()
    array = device(k).to("cpu", non_blocking=True).numpy()
    torch.cuda.synchronize()
    return array.mean()


@pair(READ, array_read_after_synchronize)
def array_read_before_synchronize(spin: Spin, k: float) -> Any:
    spin()
    array = device(k).to("cpu", non_blocking=True).numpy()
    read = array.mean()
    torch.cuda.synchronize()
    return read


def pageable_target(spin: Spin, k: float) -> Any:
    """The driver has copied to pageable memory when the call returns."""
    spin()
    host = torch.zeros(64)
    host.copy_(device(k), non_blocking=True)
    return host.mean()


@pair(READ, pageable_target)
def pinned_target(spin: Spin, k: float) -> Any:
    spin()
    host = pinned()
    host.copy_(device(k), non_blocking=True)
    return host.mean()


def view_of_another_part(spin: Spin, k: float) -> Any:
    spin()
    host = pinned(k)
    host[:32].copy_(device(0, 32), non_blocking=True)
    return host[32:].mean()


@pair(READ, view_of_another_part)
def view_of_what_is_copied(spin: Spin, k: float) -> Any:
    spin()
    host = pinned()
    host.copy_(device(k), non_blocking=True)
    return host[16:48].mean()


def printed_after_stream_synchronize(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).mean().to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return float(f"{host:.1f}")


@pair(READ, printed_after_stream_synchronize)
def printed_at_once(spin: Spin, k: float) -> Any:
    spin()
    return float(f"{device(k).mean().to('cpu', non_blocking=True):.1f}")


def copied_before_an_item(spin: Spin, k: float) -> Any:
    """`.item()` waits for its stream, and with it for the copy before it."""
    spin()
    x = device(k)
    host = x.to("cpu", non_blocking=True)
    x.sum().item()
    return host.mean()


@pair(READ, copied_before_an_item)
def copied_after_an_item(spin: Spin, k: float) -> Any:
    x = device(k)
    x.sum().item()
    spin()
    host = x.to("cpu", non_blocking=True)
    return host.mean()


def pickled_after_synchronize(spin: Spin, k: float) -> Any:
    spin()
    host = device(k).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return pickle.loads(pickle.dumps(host.numpy())).mean()


@pair(READ, pickled_after_synchronize)
def pickled_at_once(spin: Spin, k: float) -> Any:
    spin()
    return pickle.loads(pickle.dumps(device(k).to("cpu", non_blocking=True).numpy())).mean()


def copied_on_a_stream_that_is_awaited(spin: Spin, k: float) -> Any:
    x, side = device(k), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        host = x.to("cpu", non_blocking=True)
    side.synchronize()
    return host.mean()


@pair(READ, copied_on_a_stream_that_is_awaited)
def another_stream_is_awaited(spin: Spin, k: float) -> Any:
    x, side = device(k), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        host = x.to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    read = host.mean()
    side.synchronize()
    return read


# writes before a copy from the host is done


def refilled_after_event(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    spin()
    x.copy_(host, non_blocking=True)
    done = torch.cuda.Event()
    done.record()
    done.synchronize()
    host.fill_(-1)
    return awaited(x)


@pair(WRITE, refilled_after_event)
def refilled_at_once(spin: Spin, k: float) -> Any:
    host, x = pinned(k), device(0)
    spin()
    x.copy_(host, non_blocking=True)
    host.fill_(-1)
    return awaited(x)


def refilled_pageable(spin: Spin, k: float) -> Any:
    """The driver has taken what a small pageable tensor holds when the call returns."""
    host = torch.full((64,), k)
    spin()
    x = host.to("cuda", non_blocking=True)
    host.fill_(-1)
    return awaited(x)


@pair(WRITE, refilled_pageable)
def refilled_pinned(spin: Spin, k: float) -> Any:
    host = pinned(k)
    spin()
    x = host.to("cuda", non_blocking=True)
    host.sub_(1)
    return awaited(x)


def two_buffers_in_turn(spin: Spin, k: float) -> Any:
    buffers, events = [pinned(), pinned()], [torch.cuda.Event(), torch.cuda.Event()]
    built = []
    for i in range(4):
        events[i % 2].synchronize()
        buffers[i % 2].fill_(k + i)
        spin()
        built.append(buffers[i % 2].to("cuda", non_blocking=True))
        events[i % 2].record()
    return awaited(built[0])


@pair(WRITE, two_buffers_in_turn)
def events_recorded_before_their_copies(spin: Spin, k: float) -> Any:
    buffers, events = [pinned(), pinned()], [torch.cuda.Event(), torch.cuda.Event()]
    built = []
    for i in range(4):
        events[i % 2].synchronize()
        buffers[i % 2].fill_(k + i)
        events[i % 2].record()
        spin()
        built.append(buffers[i % 2].to("cuda", non_blocking=True))
    return awaited(built[0])


def new_pinned_memory_each_time(spin: Spin, k: float) -> Any:
    """Pinned memory that is freed is handed out again once its copy is done: the allocator sees to that."""
    built = []
    for i in range(3):
        spin()
        built.append(pinned(k + i).to("cuda", non_blocking=True))
    return awaited(built[0])


@pair(WRITE, new_pinned_memory_each_time)
def one_pinned_memory_each_time(spin: Spin, k: float) -> Any:
    host, built = pinned(), []
    for i in range(3):
        host.fill_(k + i)
        spin()
        built.append(host.to("cuda", non_blocking=True))
    return awaited(built[0])


def other_half_is_refilled(spin: Spin, k: float) -> Any:
    host = pinned(k)
    spin()
    x = host[:32].to("cuda", non_blocking=True)
    host[32:].fill_(-1)
    return awaited(x)


@pair(WRITE, other_half_is_refilled)
def same_half_is_refilled(spin: Spin, k: float) -> Any:
    host = pinned(k)
    spin()
    x = host[:32].to("cuda", non_blocking=True)
    host[:8].fill_(-1)
    return awaited(x)


# two streams


def side_stream_waits(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 1
    return awaited(y)


@pair(STREAMS, side_stream_waits)
def side_stream_does_not_wait(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    with torch.cuda.stream(side):
        y = x * 1
    return awaited(y)


def result_awaited_by_event(spin: Spin, k: float) -> Any:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        spin()
        x = device(k)
        done.record()
    torch.cuda.current_stream().wait_event(done)
    return awaited(x * 1)


@pair(STREAMS, result_awaited_by_event)
def event_of_the_wrong_stream(spin: Spin, k: float) -> Any:
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side):
        spin()
        x = device(k)
    done.record()
    torch.cuda.current_stream().wait_event(done)
    return awaited(x * 1)


def overwritten_after_a_wait(spin: Spin, k: float) -> Any:
    x, side = device(k), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        y = x * 1
    torch.cuda.current_stream().wait_stream(side)
    x.zero_()
    return awaited(y)


@pair(STREAMS, overwritten_after_a_wait)
def overwritten_while_read(spin: Spin, k: float) -> Any:
    x, side = device(k), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        y = x * 1
    x.zero_()
    return awaited(y)


def host_waited_in_between(spin: Spin, k: float) -> Any:
    """The host knows the work to be done, and launches after it."""
    side = torch.cuda.Stream()
    spin()
    x = device(k)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        y = x * 1
    return awaited(y)


@pair(STREAMS, host_waited_in_between)
def host_waited_too_early(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    spin()
    x = device(k)
    with torch.cuda.stream(side):
        y = x * 1
    return awaited(y)


def halves_on_two_streams(spin: Spin, k: float) -> Any:
    x, sides = device(0), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            spin()
            x[32 * i : 32 * (i + 1)].add_(k)
    return awaited(x)


@pair(STREAMS, halves_on_two_streams)
def halves_that_overlap(spin: Spin, k: float) -> Any:
    x, sides = device(0), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            if i == 0:
                spin()
            x[16 * i : 16 * i + 48].mul_(0).add_(k + i)
    torch.cuda.synchronize()
    return x[16:48].mean().item() - 1


def columns_on_two_streams(spin: Spin, k: float) -> Any:
    x, sides = device(0).view(32, 2), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            spin()
            x[:, i].add_(k)
    return awaited(x)


@pair(STREAMS, columns_on_two_streams)
def one_column_on_two_streams(spin: Spin, k: float) -> Any:
    x, sides = device(0).view(32, 2), [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, side in enumerate(sides):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            if i == 0:
                spin()
            x[:, 0].mul_(0).add_(k + i)
    torch.cuda.synchronize()
    return x[:, 0].mean().item() - 1


def graph_input_after_a_wait(spin: Spin, k: float) -> Any:
    x, side, graph = device(k), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        graph.replay()
    torch.cuda.current_stream().wait_stream(side)
    x.fill_(-1)
    return awaited(y)


@pair(STREAMS, graph_input_after_a_wait)
def graph_input_during_a_replay(spin: Spin, k: float) -> Any:
    x, side, graph = device(k), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x.mul(1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        spin()
        graph.replay()
    x.fill_(-1)
    return awaited(y)


# memory that is handed back


def freed_with_record_stream(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = device(k)
    torch.cuda.current_stream().wait_stream(side)
    spin()
    y = x * 1
    x.record_stream(torch.cuda.current_stream())
    del x
    with torch.cuda.stream(side):
        device(-1)
    return awaited(y)


@pair(FREED, freed_with_record_stream)
def freed_without_record_stream(spin: Spin, k: float) -> Any:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = device(k)
    torch.cuda.current_stream().wait_stream(side)
    spin()
    y = x * 1
    del x
    with torch.cuda.stream(side):
        device(-1)
    return awaited(y)


def home_stream_waits_before_it_allocates(spin: Spin, k: float) -> Any:
    side, built = torch.cuda.Stream(), []
    for i in range(2):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x = device(k + i)
        torch.cuda.current_stream().wait_stream(side)
        spin()
        built.append(x * 1)
        del x
    return awaited(built[0])


@pair(FREED, home_stream_waits_before_it_allocates)
def home_stream_allocates_before_it_waits(spin: Spin, k: float) -> Any:
    side, built = torch.cuda.Stream(), []
    for i in range(2):
        with torch.cuda.stream(side):
            x = device(k + i)
        side.wait_stream(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(side)
        spin()
        built.append(x * 1)
        del x
    return awaited(built[0])


def wrong_results(program: Program, runs: int) -> int:
    """Return how many of some runs on a GPU returned another number than they should."""
    wrong = 0
    for run in range(runs):
        k = float(run + 3)
        wrong += float(program(lambda: torch.cuda._sleep(CYCLES), k)) != k
        torch.cuda.synchronize()
    return wrong


def result(program: Program, runs: int) -> float:
    """Return how many runs were wrong; NaN of one that fails, which is printed."""
    try:
        return wrong_results(program, runs)
    except Exception as error:
        print(f"{program.__name__}: {type(error).__name__}: {error}", file=sys.stderr)
        return math.nan


def main() -> int:
    """Run the pairs on a GPU and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="times that each program runs")
    runs = parser.parse_args().runs
    for others in ("arrays", "pipelines", "other_forms", "training"):
        importlib.import_module(f"benchmarks.race_programs.in_{others}")
    print("| kind | wrong form | wrong numbers | right form | wrong numbers |")
    print("|---|---|--:|---|--:|")
    failed = False
    for kind, *programs in PAIRS:
        wrong, right = (result(program, runs) for program in programs)
        failed |= not wrong or bool(right)
        cells = (
            f"`{program.__name__}` | {numbers} of {runs}"
            for program, numbers in zip(programs, (wrong, right), strict=True)
        )
        print(f"| {kind.value} | {' | '.join(cells)} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
