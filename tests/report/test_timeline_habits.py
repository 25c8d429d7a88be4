"""Habits are drawn: pauses where the trace has them, what only samples show in the gaps of the step's thread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.host_stalls import PROGRAMS
from syncscan import api
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Phase
from syncscan.model.habit import Habit, SampledTime
from syncscan.model.interval import Interval, ThreadInterval
from syncscan.report import html
from syncscan.report.before_after import before_after
from syncscan.report.story import story_of
from syncscan.report.tiles import bars, sampled, tiles, widest_us
from syncscan.report.timeline import timeline
from syncscan.report.timeline_habits import (
    Placed,
    ThreadGap,
    fill,
    gaps_of,
    pauses,
    sampled_places,
    slice_name,
    without,
)
from tests.builder import TraceBuilder
from tests.each import each
from tests.report.example import LAUNCHES

STALLS = Path(__file__).parent.parent.parent / "sample_traces" / "stalls"
TRUTH = json.loads((STALLS / "truth.json").read_text())
RULES = "side-work first-touch lock-held".split()
RECORDED = [name for name in TRUTH if PROGRAMS[name].rule in RULES]
SHORT = {"first_touch_arrays": 0.27, "lock_busy": 0.18}
"""Recordings where less is drawn: the likely cost leaves out freeing the memory, and part of the waits lies in ops."""
OTHER, FORWARD, BACKWARD = (frozenset({phase}) for phase in (Phase.OTHER, Phase.FORWARD, Phase.BACKWARD))


def habit(us: float = 300.0, phase: Phase = Phase.OTHER, in_ops: bool = False, activity: str = "logs") -> Habit:
    """A habit that only samples show, in one phase."""
    sampled = SampledTime(activity, ((phase, us),), in_ops=in_ops)
    return replace(LAUNCHES, id=f"logging-{activity}", splits=(), sampled=sampled)


def analysis(*habits: Habit, unprofiled_us: float = 1000.0, op_us: float = 20.0) -> Analysis:
    """Two steps of 1000 µs: an op at 200, an op at 500, autograd's thread from 600 to 700, the optimizer at 800."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.op("aten::linear", start + 200, start + 200 + op_us):
            t.launch("gemm", at=start + 205, lasts=10)
        t.op("aten::ones_like", start + 500, start + 550)
        with t.thread("pt_autograd_0"):
            t.backward("AddBackward0", start + 601, start + 699)
        with t.scope("Optimizer.step#Adam.step", start + 800, start + 900):
            t.op("aten::_foreach_add_", start + 850, start + 900)
    analysis = api.analyze_trace(t.trace())
    return replace(analysis, habits=habits, step=replace(analysis.step, unprofiled_us=unprofiled_us))


def in_us(place: Placed, of: Analysis) -> list[tuple[float, float]]:
    """Begin and length of a habit's intervals in the first step, µs since its begin."""
    step = of.trace.main_steps[0]
    inside = [i for i in place.intervals if i.begin < step.end]
    return [((i.begin - step.ts) / 1e3, (i.end - i.begin) / 1e3) for i in inside]


def test_gaps_know_the_phases_that_the_trace_tells() -> None:
    """Backward lasts from the last op before autograd's thread to its end; what follows it is in no forward."""
    outcome = analysis()
    step = outcome.trace.main_steps[0]
    gaps = [((g.begin - step.ts) / 1e3, (g.end - step.ts) / 1e3, sorted(g.phases)) for g in gaps_of(outcome)[step]]
    before = sorted([Phase.DATA, Phase.FORWARD, Phase.OTHER])
    assert gaps == [
        (0.0, 200.0, before),
        (220.0, 500.0, before),
        (550.0, 700.0, [Phase.BACKWARD]),
        (700.0, 800.0, [Phase.OTHER]),
        (800.0, 850.0, [Phase.OPTIMIZER]),
        (900.0, 1000.0, [Phase.OTHER]),
    ]


def test_the_longest_gaps_are_filled_first_and_the_last_one_in_part() -> None:
    """A gap of another phase stays empty."""
    gaps = [ThreadGap(0, 100, OTHER), ThreadGap(200, 500, OTHER), ThreadGap(600, 990, FORWARD)]
    assert fill([(Phase.OTHER, 350.0)], gaps, least=1) == [Interval(0, 50), Interval(200, 500)]


def test_a_rest_that_is_too_short_to_be_seen_is_left_out() -> None:
    """The second gap has 3 of 303 ns."""
    gaps = [ThreadGap(0, 100, OTHER), ThreadGap(200, 500, OTHER)]
    assert fill([(Phase.OTHER, 303.0)], gaps, least=5) == [Interval(200, 500)]


def test_two_phases_fill_a_gap_of_both_one_after_the_other() -> None:
    """And make one interval of it."""
    gaps = [ThreadGap(0, 100, OTHER | FORWARD), ThreadGap(200, 300, BACKWARD)]
    filled = fill([(Phase.OTHER, 40.0), (Phase.FORWARD, 30.0), (Phase.BACKWARD, 500.0)], gaps, least=1)
    assert filled == [Interval(0, 70), Interval(200, 300)]


def test_what_one_habit_fills_is_taken_for_the_next() -> None:
    """Also where one interval reaches through two gaps that touch."""
    gaps = [ThreadGap(0, 100, OTHER), ThreadGap(100, 200, FORWARD), ThreadGap(300, 400, OTHER)]
    assert without(gaps, [ThreadInterval(1, 0, 150)]) == [ThreadGap(150, 200, FORWARD), ThreadGap(300, 400, OTHER)]


def test_a_habit_is_stretched_as_the_step_is_by_the_profiler() -> None:
    """150 of 500 µs without the profiler are 300 of the recorded 1000."""
    outcome = analysis(habit(150.0), unprofiled_us=500.0)
    (place,) = sampled_places(outcome)
    assert in_us(place, outcome) == [(0.0, 20.0), (220.0, 280.0)]


def test_a_habit_of_the_optimizer_lies_in_its_scope() -> None:
    """Though longer gaps are elsewhere."""
    outcome = analysis(habit(60.0, Phase.OPTIMIZER))
    (place,) = sampled_places(outcome)
    assert in_us(place, outcome) == [(800.0, 50.0)]


def test_two_habits_share_the_gaps() -> None:
    """The longer one takes the longest gap, the other what is left."""
    outcome = analysis(habit(90.0, activity="logs"), habit(280.0, activity="tokenizes texts"))
    first, second = sampled_places(outcome)
    assert slice_name(first.habit) == "tokenizes texts (from samples: likely here)"
    assert (in_us(first, outcome), in_us(second, outcome)) == ([(220.0, 280.0)], [(0.0, 90.0)])


def test_a_habit_whose_time_is_mostly_not_in_gaps_is_not_drawn() -> None:
    """Its detail says why; the optimizer has 50 µs of 300."""
    outcome = analysis(habit(300.0, Phase.OPTIMIZER))
    (place,) = sampled_places(outcome)
    assert place.intervals == ()
    assert place.unplaced.startswith("The timeline doesn't show where: outside of ops and calls")
    assert "less than half of this time" in html.render(outcome)


@pytest.mark.parametrize(("op_us", "drawn"), [(20.0, True), (290.0, False)])
def test_work_that_an_op_may_hold_is_not_drawn_beside_a_longer_one(op_us: float, drawn: bool) -> None:
    """First touches happen in an op as well as in numpy's functions."""
    (place,) = sampled_places(analysis(habit(200.0, in_ops=True), op_us=op_us))
    assert bool(place.intervals) == drawn
    assert ("an op such as aten::linear may hold it" in place.unplaced) != drawn


def test_the_lane_links_its_slices_to_the_habit() -> None:
    """By the number of their name, which a search counts."""
    outcome = analysis(habit(280.0, activity="waits for the GIL, held by <b>"))
    data = timeline(outcome)
    (lane,) = [lane for group in data["groups"] for lane in group["lanes"] if lane["kind"] == "sampled"]
    ((number, id),) = data["habits"].items()
    assert (lane["label"], id) == ("from samples", outcome.habits[0].id)
    assert data["names"][number] == "waits for the GIL, held by <b> (from samples: likely here)"
    assert data["counts"][number] == 2


def test_a_trace_without_steps_has_no_places() -> None:
    """Nor has one without such habits."""
    t = TraceBuilder()
    t.launch("k", at=5, lasts=10)
    assert sampled_places(replace(api.analyze_trace(t.trace()), habits=(habit(),))) == ()
    assert sampled_places(analysis(LAUNCHES)) == ()


@each("name", RECORDED)
def test_what_is_drawn_of_a_recording_is_as_long_as_was_measured(name: str) -> None:
    """As a share of the step, within 15 points of what its fix saves on an H200."""
    outcome = api.analyze(STALLS / f"{name}.json.gz")
    steps = sum(step.end - step.ts for step in outcome.trace.main_steps)
    (place,) = [p for p in sampled_places(outcome) if p.habit.rule == PROGRAMS[name].rule]
    share = sum(i.end - i.begin for i in place.intervals) / steps
    assert (share > 0) == (name != "first_touch")
    assert bool(place.unplaced) == (name == "first_touch")
    if share:
        assert share == pytest.approx(1 - TRUTH[name]["fixed"] / TRUTH[name]["habit"], abs=SHORT.get(name, 0.15))


@pytest.mark.parametrize(("name", "function"), [("lock_busy", "count_words"), ("lock_parser", "parse_records")])
def test_a_wait_for_the_lock_names_its_holder(name: str, function: str) -> None:
    """Its thread, function, file and line, in this order."""
    (place,) = sampled_places(api.analyze(STALLS / f"{name}.json.gz"))
    assert slice_name(place.habit).startswith(f"waits for the GIL, held by reporter: {function}, host_stalls.py:1")


def test_a_first_touch_in_an_op_says_so() -> None:
    """`torch.stack` touches the memory, and is longer than any gap."""
    (place,) = sampled_places(api.analyze(STALLS / "first_touch.json.gz"))
    assert "an op such as aten::stack may hold it as well as a gap" in place.unplaced


def test_logging_lies_behind_the_optimizer() -> None:
    """Where the recorded program logs, at the end of its step."""
    outcome = api.analyze(STALLS / "logging.json.gz")
    (place,) = sampled_places(outcome)
    step = outcome.trace.main_steps[-1]
    assert [i.begin > step.end - 0.3 * (step.end - step.ts) for i in place.intervals if i.begin > step.ts] == [True]


def test_the_collector_s_pause_is_a_slice_of_its_thread() -> None:
    """On a lane of its own, by the habit's title; a search for it counts it."""
    analysis = api.analyze(STALLS / "gc.json.gz")
    ((habit, intervals),) = pauses(analysis)
    data = timeline(analysis)
    (lane,) = [lane for group in data["groups"] for lane in group["lanes"] if lane["kind"] == "pauses"]
    assert lane["label"] == "pauses"
    number = data["names"].index(habit.advice.title)
    assert data["counts"][number] == len(intervals)


def test_the_step_without_the_collector_is_drawn_and_promised() -> None:
    """A pause before, none after, and a tile with the saving and its range."""
    analysis = api.analyze(STALLS / "gc.json.gz")
    drawn = before_after(analysis, story_of(analysis))
    assert drawn is not None
    assert [piece.look for piece in drawn.recorded.host] == ["pause"]
    assert drawn.shown.lanes.host == ()
    assert tiles(analysis)[-1].label == "recoverable by the first change"


def test_a_saving_by_samples_is_a_bar_of_its_own() -> None:
    """The step before and after doesn't draw it, since its place is only likely; the bar says that it stands alone."""
    analysis = api.analyze(STALLS / "lock_busy.json.gz")
    (bar,) = sampled(analysis, story_of(analysis), widest_us(analysis))
    assert bar.label.endswith("(alone, by samples)")
    (thread,) = [bar for bar in bars(analysis) if bar.label == "thread, sampled"]
    assert "off it while another Python thread ran" in thread.spoken
    assert "by samples" in html.render(analysis)
