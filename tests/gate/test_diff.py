"""A place is recognized after changes around it, and other places are told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from syncscan import api, gate
from syncscan.errors import UsageError
from syncscan.gate import state_diff
from syncscan.gate.diff_report import verdict
from syncscan.gate.differences import Diff, PromiseOutcome, SiteStatus
from syncscan.gate.matched_sites import NOWHERE, Key, matched
from syncscan.gate.recordings import UNRELATED
from syncscan.model.analysis import Analysis
from tests.builder import TraceBuilder
from tests.each import each
from tests.gate.story import Sync, program
from tests.recordings import analyzed

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def diff(before: Sequence[Sync], after: Sequence[Sync]) -> Diff:
    return gate.diff([program(*before)], [program(*after)])


def told(difference: Diff) -> dict[str, list[str]]:
    """Op and line of what differs, by what became of it."""
    lines: dict[str, list[str]] = {}
    for c in difference.changes:
        source = c.site.first.source
        lines.setdefault(c.change.value, []).append(f"{c.site.first.op}:{source.line if source else ''}")
    return lines


ITEM = Sync(line=10)

THE_SAME = {
    "moved lines": ([ITEM, replace(ITEM, line=20)], [replace(ITEM, line=13), replace(ITEM, line=23)]),
    "a renamed folder": ([ITEM], [replace(ITEM, file="/tmp/b/other/train.py")]),
    "a renamed file": ([ITEM], [replace(ITEM, file="/home/a/project/loop.py", line=30)]),
    "another function of the file": ([ITEM], [replace(ITEM, function="loss", line=3)]),
    "a scope that came around": ([replace(ITEM, scope="x")], [replace(ITEM, scope="loss")]),
    "steps' numbers in scopes": ([replace(ITEM, scope="step #")], [replace(ITEM, scope="step 7", line=11)]),
    "no lines in one of them": ([ITEM, replace(ITEM, line=20)], [replace(ITEM, line=0), replace(ITEM, line=0)]),
    "no lines at all": ([replace(ITEM, line=0)], [replace(ITEM, line=0)]),
}


@each("kind", THE_SAME)
def test_the_same_code_differs_in_nothing(kind: str) -> None:
    """Neither this way nor that."""
    before, after = THE_SAME[kind]
    assert set(told(diff(before, after))) == {"same"}
    assert set(told(diff(after, before))) == {"same"}


def test_one_that_came_in_is_reported_with_its_line() -> None:
    """Lines below it moved on; it is the new one, and nothing else."""
    before = [ITEM, replace(ITEM, line=20), replace(ITEM, line=30)]
    after = [ITEM, replace(ITEM, line=15), replace(ITEM, line=21), replace(ITEM, line=31)]
    difference = diff(before, after)
    assert told(difference)["new"] == ["aten::item:15"]
    assert "gone" not in told(difference)
    assert [c.site.first.source for c in difference.worse] == [difference.of(SiteStatus.NEW)[0].site.first.source]


def test_one_more_where_lines_are_not_known_is_more_often() -> None:
    """Without lines two syncs of a scope and an op are one place, which waits twice."""
    difference = diff([replace(ITEM, line=0)], [replace(ITEM, line=0)] * 2)
    assert set(told(difference)) == {"changed"}
    (change,) = difference.changes
    assert (change.worse, change.how_long) == (True, False)
    assert difference.worse == difference.changes


def test_other_scopes_are_other_places() -> None:
    """Numbers that tell layers apart, and not steps, stay; so do functions of other files."""
    layers = [replace(ITEM, line=0, scope=f"layer {n}") for n in range(3)]
    difference = diff(layers, layers[1:])
    assert told(difference) == {"gone": ["aten::item:"], "same": ["aten::item:"] * 2}
    other = replace(ITEM, file="/home/a/project/eval.py", function="run", scope="eval")
    assert set(told(diff([ITEM], [other]))) == {"new", "gone"}


def test_what_not_every_step_has_may_be_chance() -> None:
    """One of three steps has it: another recording of the same code may not."""
    now_and_then = replace(ITEM, op="aten::nonzero", line=50, steps=(1,))
    difference = diff([ITEM], [ITEM, now_and_then])
    assert told(difference)["occasional"] == ["aten::nonzero:50"]
    assert not difference.worse
    many = gate.diff([program(ITEM, steps=20)], [program(ITEM, replace(now_and_then, steps=range(0, 20, 3)), steps=20)])
    assert told(many)["new"] == ["aten::nonzero:50"]


def test_several_recordings_are_one_state() -> None:
    """A sync in each step of one recording counts; a sync in an earlier recording alone isn't lost."""
    other = replace(ITEM, op="aten::nonzero", line=50)
    difference = gate.diff([program(ITEM)], [program(ITEM), program(ITEM, other)])
    assert told(difference) == {"same": ["aten::item:10"], "new": ["aten::nonzero:50"]}
    assert difference.of(SiteStatus.NEW)[0].site.per_step == 0.5


@pytest.mark.parametrize("name", ["maskedloss.v0", "lines"])
def test_a_recording_and_itself(name: str) -> None:
    """Everything is the same, and the step took as long."""
    analysis = analyzed(SAMPLES / f"{name}.pt.trace.json.gz")
    difference = gate.diff([analysis], [analysis])
    assert {c.change for c in difference.changes} == {SiteStatus.SAME}
    assert difference.step.saving_us == 0


def test_two_recordings_of_the_same_code_differ_in_nothing() -> None:
    """With Python frames and without, which give rules other things to go by."""
    lines, stacks = (analyzed(SAMPLES / f"{name}.pt.trace.json.gz") for name in ("lines", "lines.stacks"))
    difference = gate.diff([lines], [stacks])
    assert {c.change for c in difference.changes} == {SiteStatus.SAME}
    assert not difference.step.distinguishable


def test_a_wait_that_moved_won_nothing() -> None:
    """Nonzero is gone, unique waits as long now, and the step is what it was: as the replay had said."""
    before, after = (analyzed(SAMPLES / f"maskedloss.v{n}.pt.trace.json.gz") for n in (0, 1))
    difference = gate.diff([before], [after])
    assert [c.site.first.rule for c in difference.of(SiteStatus.GONE)] == ["nonzero", "scalar-assign"]
    assert [c.site.first.rule for c in difference.of(SiteStatus.CHANGED)] == ["unique"]
    (moved,) = difference.moved
    assert moved.us == pytest.approx(difference.gone_wait_us, rel=0.01)
    assert not difference.step.distinguishable
    assert difference.promise is not None
    assert difference.promise.saving_us < 0.005 * difference.step.before_us
    assert difference.promise.kept is PromiseOutcome.YES


LINES = st.lists(st.integers(1, 40), min_size=0, max_size=5, unique=True)


@settings(max_examples=settings().max_examples // 4)
@given(LINES, LINES)
def test_each_place_is_reported_once_and_the_other_way_round_is_the_mirror(before: list[int], after: list[int]) -> None:
    """With m and n lines of a function, min(m, n) match and the rest is new or gone; swapping mirrors the result."""
    one, other = ([replace(ITEM, line=n) for n in lines] for lines in (before, after))
    forth, back = diff(one, other), diff(other, one)
    assert len(forth.of(SiteStatus.SAME)) == min(len(before), len(after))
    assert len(forth.of(SiteStatus.NEW)) == len(back.of(SiteStatus.GONE)) == max(0, len(after) - len(before))
    assert len(forth.of(SiteStatus.GONE)) == len(back.of(SiteStatus.NEW)) == max(0, len(before) - len(after))


def test_both_states_are_needed() -> None:
    """A diff of nothing is a mistake of the caller's."""
    with pytest.raises(UsageError, match="at least one recording of each state"):
        gate.diff([], [program(ITEM)])


def unprofiled(us: float, times: Sequence[float] = ()) -> Analysis:
    """A step whose time without the profiler is known."""
    from syncscan.api import analyze_trace
    from tests.gate.story import trace_of

    t = trace_of(ITEM)
    t.metadata.setdefault("syncscan", {}).update(unprofiled_step_us=us, unprofiled_steps_us=list(times))
    return analyze_trace(t.trace())


def test_a_step_s_change_is_set_against_its_spread() -> None:
    """10 % of quiet steps is told; of steps that differ by as much it isn't."""
    quiet = gate.diff([unprofiled(1000, [999, 1000, 1001, 1000])], [unprofiled(900, [899, 900, 901, 900])])
    noisy = gate.diff([unprofiled(1000, [700, 1000, 1300, 1000])], [unprofiled(900, [600, 900, 1200, 900])])
    assert (quiet.step.distinguishable, noisy.step.distinguishable) == (True, False)
    assert quiet.step.saving_us == pytest.approx(100)


def test_steps_that_wander_together_tell_less_than_as_many_apart() -> None:
    """A host that is slow for ten steps and fast for ten is somewhere else the next time; one that jitters isn't."""
    apart, together = [950.0, 1050.0] * 20, ([950.0] * 10 + [1050.0] * 10) * 2
    messages = [
        gate.diff([unprofiled(1000, times)], [unprofiled(880, [time * 0.88 for time in times])]).step
        for times in (apart, together)
    ]
    assert [step.distinguishable for step in messages] == [True, False]
    alike = math.sqrt(33 / 39) * 50  # 36 of 39 neighbours lie on one side of the mean, 3 on both
    assert messages[1].margin_us == pytest.approx(1.96 * 2.5 * alike * math.hypot(1, 0.88), rel=0.05)


def test_a_device_s_pace_does_not_wander() -> None:
    """However the steps' spread lies: what the device does takes as long the next time."""
    wandering = ([998.0] * 10 + [1002.0] * 10) * 2
    step = gate.diff([held(1000, wandering)], [held(950, [time - 50 for time in wandering])]).step
    assert step.distinguishable
    assert step.margin_us < 12


def held(us: float, times: Sequence[float]) -> Analysis:
    """Build a step that its device fills."""
    analysis = unprofiled(us, times)
    return replace(analysis, step=replace(analysis.step, device_busy_us=analysis.step.observed_us))


def test_a_host_under_the_profiler_tells_little() -> None:
    """A host's time in a trace differs by tens of percents from one recording to the next."""
    difference = gate.diff([program(ITEM, lasts=1000)], [program(ITEM, lasts=800)])
    assert not difference.step.unprofiled
    assert not difference.step.distinguishable
    assert 250 < difference.step.margin_us < 500


def test_several_recordings_tell_their_own_spread() -> None:
    """Three recordings of each state, a percent apart, tell 20 % of a host's time."""
    before, after = ([program(ITEM, lasts=at * part) for part in (1, 1.01, 0.99)] for at in (1000, 800))
    difference = gate.diff(before, after)
    assert difference.step.distinguishable
    assert difference.step.margin_us < 60


def test_steps_that_were_found_otherwise_are_not_compared() -> None:
    """A whole trace is no step of three."""
    marked, whole = program(ITEM), program(ITEM, steps=1)
    trace = replace(whole.trace, steps=(), steps_found=type(whole.trace.steps_found)(asked=True))
    difference = gate.diff([marked], [api.analyze_trace(trace)])
    assert "different ways" in difference.step.why_not
    assert not difference.step.distinguishable


def test_one_recording_may_know_more_of_a_place_than_the_other() -> None:
    """The library's line is known with frames alone; without, the user's function under the same scope is the place."""
    user, inside = ("train.py", 9, "step"), ("site-packages/lib/core.py", 5, "read")
    detailed = [Key(("loss",), "aten::item", "other", False, user, ("lib/core.py", n, "read"), True) for n in (5, 8)]
    unknown = Key(("loss",), "aten::item", "forward", False, user, NOWHERE, False)
    elsewhere = Key(("loss",), "aten::item", "other", False, NOWHERE, inside, True)
    assert matched(detailed, [unknown]) == [(tuple(detailed), (unknown,))]
    assert matched([unknown], [elsewhere]) == [((unknown,), ()), ((), (elsewhere,))]


def test_a_vendor_s_name_of_a_call_is_no_other_place() -> None:
    """`torch.cuda.synchronize()` is one line, whatever the device calls it."""
    from syncscan.api import analyze_trace

    sides = []
    for vendor in ("cuda", "rocm"):
        t = TraceBuilder(vendor)
        for start in t.steps(3, lasts=1000):
            with t.scope("loss", start + 5, start + 900):
                t.launch("gemm", at=start + 10, lasts=300)
                t.synchronize(at=start + 30)
        sides.append([analyze_trace(t.trace())])
    assert set(told(gate.diff(*sides))) == {"same"}


SAMPLES = Path(__file__).parents[2] / "sample_traces"


@each(
    ("before", "after", "warns"),
    [
        ("logged.pt.trace.json.gz", "whatif/detector.json.gz", True),
        ("whatif/agent.json.gz", "programs/recorded/tips.fp32.pt.trace.json.gz", True),
        ("logged.pt.trace.json.gz", "logged.kept.pt.trace.json.gz", False),
        ("maskedloss.v0.pt.trace.json.gz", "maskedloss.v3.pt.trace.json.gz", False),
        ("programs/recorded/tips.fp32.pt.trace.json.gz", "programs/recorded/tips.tf32.pt.trace.json.gz", False),
        ("programs/recorded/tips.item.pt.trace.json.gz", "programs/recorded/tips.no_item.pt.trace.json.gz", False),
        ("lines.pt.trace.json.gz", "lines.pt.trace.json.gz", False),
    ],
)
def test_different_programs_are_warned_of(before: str, after: str, warns: bool) -> None:
    """By their places and kernels: removing a sync, or computing in another precision, is the same program."""
    diff = state_diff.diff([analyzed(SAMPLES / before)], [analyzed(SAMPLES / after)])
    assert (UNRELATED in diff.notes) == diff.unrelated == warns
    assert not (warns and "no others" in verdict(diff))
