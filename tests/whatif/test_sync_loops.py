"""Whose loop repeats a sync: the network's own function's, or one's that it calls; by stacks or frames."""

from __future__ import annotations

import pytest

from syncscan import api
from syncscan.whatif.compile_reach import LoopHolder, SyncLoops
from tests.builder import TraceBuilder

CALL = ("site-packages/torch/nn/modules/module.py", 1790, "_call_impl")
FORWARD, READ, STEP = ("net.py", 12, "forward"), ("net.py", 3, "read"), ("train.py", 9, "step")


def recorded(looped: list[tuple[str, int, str]] | None, *inner: tuple[str, int, str]) -> LoopHolder:
    """Whose loop it is of a read in three rounds, with these frames in the network, innermost first."""
    t = TraceBuilder()
    with t.step(0, 300):
        for at in (10.0, 110.0, 210.0):
            t.exact(at + 4.5, *inner, CALL, STEP, module="Net")
            t.sync("aten::item > aten::_local_scalar_dense", at=at)
    if looped is not None:
        lines = t.metadata["syncscan"]["lines"]
        lines["looped"] = [n for n, frame in enumerate(lines["frames"]) if tuple(frame) in looped]
    return holder(t)


def holder(t: TraceBuilder) -> LoopHolder:
    """Whose loop repeats the syncs of a trace."""
    analysis = api.analyze_trace(t.trace())
    (finding,) = analysis.findings
    return SyncLoops(analysis.trace).holder(finding.occurrences)


@pytest.mark.parametrize(
    ("looped", "expected"),
    [
        ([FORWARD], LoopHolder.NETWORK),
        ([FORWARD, READ], LoopHolder.NETWORK),
        ([READ], LoopHolder.CALLED),
        ([], LoopHolder.NONE),
        ([STEP], LoopHolder.NONE),
        (None, LoopHolder.UNKNOWN),
    ],
)
def test_the_outermost_loop_within_the_network_holds_the_sync(
    looped: list[tuple[str, int, str]] | None, expected: LoopHolder
) -> None:
    """Dynamo meets `forward` first, then what it calls. A loop around the calls of the network is none."""
    assert recorded(looped, READ, FORWARD) is expected


def test_of_a_read_in_forward_itself_an_older_capture_takes_the_loop_to_be_there() -> None:
    """No other function is within the network; a newer capture knows."""
    assert recorded(None, FORWARD) is LoopHolder.NETWORK
    assert recorded([], FORWARD) is LoopHolder.NONE


def framed(calls: int, function: str = "") -> TraceBuilder:
    """Six reads, in so many calls of the network, within its `forward` or a function that this calls once."""
    t = TraceBuilder()
    with t.step(0, 620), t.frame("train.py(5): step", 1, 619):
        for call in range(calls):
            begin, end = 10 + call * 600 / calls, 5 + (call + 1) * 600 / calls
            with t.frame("nn.Module: Net_0", begin, end), t.frame("net.py(10): forward", begin + 1, end - 1):
                for number in range(6 // calls):
                    at = begin + 5 + number * 90
                    if function == "each":
                        with t.frame("net.py(2): read", at - 1, at + 60):
                            t.sync("aten::item > aten::_local_scalar_dense", at=at)
                    elif function == "all" and not number:
                        with t.frame("net.py(2): read", at - 1, end - 2):
                            for inner in range(6 // calls):
                                t.sync("aten::item > aten::_local_scalar_dense", at=at + inner * 90)
                    elif not function:
                        t.sync("aten::item > aten::_local_scalar_dense", at=at)
    return t


def test_the_profiler_s_frames_around_all_rounds_have_the_loop() -> None:
    """One call of `forward` around all, whether each round calls a function or not; or one call of that function."""
    assert holder(framed(1)) is LoopHolder.NETWORK
    assert holder(framed(1, "each")) is LoopHolder.NETWORK
    assert holder(framed(1, "all")) is LoopHolder.CALLED


def test_calls_of_the_network_that_wait_once_each_are_no_loop_of_its() -> None:
    """Each has frames of its own."""
    assert holder(framed(6)) is LoopHolder.NONE
