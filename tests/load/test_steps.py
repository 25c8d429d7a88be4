"""The steps of a trace are marked by the profiler, a framework or a scope's name, or by repetition."""

from __future__ import annotations

import pytest

from syncscan.errors import UsageError
from syncscan.facts.period import step_intervals
from syncscan.load import with_steps
from syncscan.model.step_marks import FoundBy, ServingPhase, StepsFound
from syncscan.model.trace import Trace
from tests.builder import TraceBuilder


def bounds(trace: Trace) -> list[tuple[float, float]]:
    """Begin and end of each step in µs."""
    return [(step.ts / 1e3, step.end / 1e3) for step in trace.steps]


def served(*names: str, lasts: float = 900, every: float = 1000) -> TraceBuilder:
    """Ranges of these names, one after the other, with a launch in each."""
    t = TraceBuilder()
    for k, name in enumerate(names):
        with t.scope(name, k * every, k * every + lasts):
            t.launch(at=k * every + 10, lasts=100)
    return t


def test_the_profilers_marks_come_first() -> None:
    """A framework's ranges inside of them say which phase each is."""
    t = TraceBuilder()
    for start, name in zip(t.steps(2, lasts=1000), ("step[EXTEND bs=1 toks=9]", "step[DECODE bs=1]"), strict=True):
        t.scope(name, start + 100, start + 800)
        t.launch(at=start + 200, lasts=10)
    trace = t.trace()
    assert trace.steps_found == StepsFound(FoundBy.PROFILER)
    assert [step.mark and step.mark.phase for step in trace.steps] == [ServingPhase.PREFILL, ServingPhase.DECODE]


def test_a_frameworks_ranges_are_steps() -> None:
    """Each reaches to the next one's begin: a server samples behind its range. The last gets the usual pause."""
    trace = served(*["execute_context_0(0)_generation_4(4)"] * 3).trace()
    assert trace.steps_found == StepsFound(FoundBy.FRAMEWORK, "vLLM")
    assert bounds(trace) == [(0, 1000), (1000, 2000), (2000, 3000)]
    assert [step.number for step in trace.steps] == [0, 1, 2]


def test_of_nested_marks_the_outer_ones_are_steps() -> None:
    """A wrapper of vLLM's kind around SGLang's ranges."""
    t = TraceBuilder()
    with t.scope("execute_context_0(0)_generation_4(4)", 0, 900), t.scope("step[DECODE bs=4]", 100, 800):
        t.launch(at=200, lasts=100)
    assert bounds(t.trace()) == [(0, 900)]


def test_marks_beside_most_of_the_work_are_no_steps() -> None:
    """One range with one of five launches in it: the trace isn't made of those."""
    t = served("Decode")
    for k in range(4):
        t.launch(f"other{k}", at=2000 + 500 * k, lasts=100)
    assert t.trace().steps_found == StepsFound()


def test_a_pause_longer_than_a_step_belongs_to_none() -> None:
    """A server that had nothing to do for 10 ms: the step before it ends with the usual pause."""
    t = served(*["step[DECODE bs=1]"] * 3)
    with t.scope("step[DECODE bs=1]", 12_900, 13_800):
        t.launch(at=12_910, lasts=100)
    trace = t.trace()
    assert bounds(trace) == [(0, 1000), (1000, 2000), (2000, 3000), (12_900, 13_900)]
    assert [step.number for step in trace.steps] == [0, 1, 2, 4]
    assert [i.length / 1e3 for i in step_intervals(trace)] == [1000] * 4


def test_a_scope_makes_steps() -> None:
    """Whatever else is marked; of nested ranges of such names the outer ones."""
    t = TraceBuilder()
    with t.step(0, 5000):
        for k in range(2):
            with (
                t.scope(f"iteration {k}", 2000 * k, 2000 * k + 1500),
                t.scope("iteration inner", 2000 * k + 10, 2000 * k + 20),
            ):
                pass
    trace = with_steps(t.trace(), "iteration*")
    assert bounds(trace) == [(0, 2000), (2000, 4000)]
    assert trace.steps_found == StepsFound(FoundBy.SCOPE, "iteration*")


def test_a_scopes_name_may_hold_brackets() -> None:
    """A name is taken as it stands before it is taken as a pattern."""
    trace = with_steps(served("a[b]", "a[b]").trace(), "a[b]")
    assert len(trace.steps) == 2


def test_of_several_threads_the_one_with_the_most_ranges_has_the_steps() -> None:
    """Else each step of a program would count twice."""
    t = served("part", "part")
    with t.thread("other"):
        t.scope("part", 100, 200)
    assert len(with_steps(t.trace(), "part").steps) == 2


def test_a_scope_that_isnt_there_is_a_usage_error() -> None:
    """The hint names close ones."""
    with pytest.raises(UsageError, match=r"called 'trainstep'") as raised:
        with_steps(served("train_step").trace(), "trainstep")
    assert "train_step" in raised.value.hint


def test_the_whole_can_be_asked_for() -> None:
    """Then nothing counts as a mark."""
    trace = with_steps(served("step[DECODE bs=1]").trace(), as_one_step=True)
    assert (trace.steps, trace.steps_found) == ((), StepsFound(asked=True))


# what repeats


def looped(count: int, *, lasts: float = 1000, ahead: float = 0, behind: float = 0) -> TraceBuilder:
    """A loop of two ops with a launch in each, and other launches before and behind it."""
    t = TraceBuilder()
    if ahead:
        t.launch("warm up", at=0, lasts=1)
    for k in range(count):
        for j, name in enumerate(("aten::mm", "aten::relu")):
            at = ahead + k * lasts + j * lasts / 2
            with t.op(name, at, at + 100):
                t.launch(name, at=at + 10, lasts=50)
    if behind:
        t.launch("evaluation", at=ahead + count * lasts + behind, lasts=1)
    return t


def test_what_repeats_makes_steps() -> None:
    """Three times the same two launches; the last one lasts as long as is usual."""
    trace = looped(3).trace()
    assert trace.steps_found == StepsFound(FoundBy.REPETITION, calls=2)
    assert bounds(trace) == [(0, 1000), (1000, 2000), (2000, 3000)]


def test_twice_is_no_repetition() -> None:
    """Two alike can be chance."""
    assert looped(2).trace().steps == ()


@pytest.mark.parametrize(("behind", "expected"), [(2000, 3), (4000, 0)])
def test_what_repeats_has_to_fill_more_than_half_of_the_time(behind: float, expected: int) -> None:
    """Three steps of 1 ms before another launch 2 or 4 ms later."""
    assert len(looped(3, behind=behind).trace().steps) == expected


def test_what_was_before_the_loop_is_in_no_step() -> None:
    """A launch ahead of it, with the loop filling most of the time."""
    assert bounds(looped(4, ahead=500).trace())[0] == (500, 1500)


def test_a_loop_inside_a_scope_makes_no_steps() -> None:
    """Layers of one forward pass: a step can't begin in the middle of a range."""
    t = TraceBuilder()
    with t.scope("forward", 0, 5000):
        for k in range(4):
            t.launch("layer", at=10 + 1000 * k, lasts=10)
    assert t.trace().steps == ()


def test_the_shortest_sequence_counts() -> None:
    """Six times A B is also three times A B A B."""
    assert len(looped(6).trace().steps) == 6


def test_calls_that_wait_belong_to_the_sequence() -> None:
    """Two launches and one synchronize a step, with nothing around them."""
    t = TraceBuilder()
    for k in range(3):
        t.launch("a", at=100 * k, lasts=5)
        t.launch("b", at=100 * k + 10, lasts=5)
        t.synchronize(at=100 * k + 20)
    assert t.trace().steps_found == StepsFound(FoundBy.REPETITION, calls=3)


def test_a_thread_that_only_waits_has_no_steps() -> None:
    """It waits for an event again and again, as a watchdog does."""
    t = TraceBuilder()
    t.launch("alone", at=0, lasts=5)
    with t.thread("other"):
        for k in range(10):
            t.call("cudaEventSynchronize", 100 * k, 100 * k + 50)
    assert t.trace().steps == ()


def test_a_loop_that_the_window_cuts_has_its_whole_steps_counted() -> None:
    """It begins at the second of two launches and ends behind the first: three whole steps lie between."""
    t = TraceBuilder()
    for k in range(1, 8):
        t.launch("ab"[k % 2], at=100 * k, lasts=5)
    trace = t.trace()
    assert len(trace.steps) == 3
    assert [step.end - step.ts for step in trace.steps] == [200_000] * 3
