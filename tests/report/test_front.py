"""Every first screen of every recording keeps to the principles: short, one base, gains that add up, and how sure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from syncscan.model.analysis import Analysis
from syncscan.model.habit import Area, Basis
from syncscan.model.states import REDUCE_OVERHEAD
from syncscan.model.step import Bound
from syncscan.report import render
from syncscan.report.front import LINE, Front, front_of
from syncscan.report.front_changes import DO, MOST, ListedChange
from syncscan.report.front_places import LEAST as A_QUARTER
from syncscan.report.phrases import real, replayed
from syncscan.report.timed_steps import uncertainty
from syncscan.report.units import time_and_range
from tests.each import each
from tests.recordings import FOLDER, RECORDINGS, analyzed, large, name

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?%?")


Screens = dict[str, tuple[Analysis, Front]]
shown: Screens = {}
"""The analyses and first screens that the principles are held to."""


@cache
def screens(part: str) -> Screens:
    """Return the analysis and the first screen of each small recording, or of each large one."""
    paths = [path for path in RECORDINGS if large(path) == (part == "slow")]
    return {name(path): (analyzed(path), front_of(analyzed(path))) for path in paths}


@pytest.fixture(autouse=True, params=["quick", pytest.param("slow", marks=pytest.mark.slow)])
def part(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each principle is held to in two parts."""
    monkeypatch.setattr(f"{__name__}.shown", screens(request.param))


def misses(principle: Callable[[Analysis, Front], Iterator[str]]) -> list[str]:
    return [f"{where}: {miss}" for where, (analysis, front) in shown.items() for miss in principle(analysis, front)]


def test_the_verdict_is_two_short_sentences() -> None:
    """At most 25 words each and three numbers together; the second says what the changes gain together."""

    def short(_: Analysis, f: Front) -> Iterator[str]:
        for sentence in (f.verdict, f.together):
            if len(sentence.split()) > 25 or not sentence.endswith("."):
                yield sentence
        if len(NUMBER.findall(f"{f.verdict} {f.together}")) > 3:
            yield f"{f.verdict} {f.together}"

    assert misses(short) == []


def test_at_most_three_changes_each_with_a_place_and_one_imperative() -> None:
    """A change is two lines of 80 columns: what it gains and where, and what to do."""

    def complete(_: Analysis, f: Front) -> Iterator[str]:
        if len(f.changes) > MOST:
            yield f"{len(f.changes)} changes"
        for change in f.changes:
            if not change.place or not change.do.endswith(".") or len(change.do) > DO:
                yield f"{change.place}: {change.do}"

    assert misses(complete) == []


def test_gains_add_up_to_what_the_second_sentence_says() -> None:
    """Each row begins at the state in which the row above ends, and the last one's state is the sentence's."""

    def add_up(a: Analysis, f: Front) -> Iterator[str]:
        rows = [change for change in f.changes if change.gain is not None]
        before = replayed(a.step)
        for row in rows:
            if abs(row.before_us - before) > 1e-6 or abs(row.before_us - row.after_us - row.gain * f.step_us) > 1e-3:
                yield f"{row.amount} of {row.before_us} to {row.after_us}"
            before = row.after_us
        if rows and not rows[0].may and uncertainty(a) < 1.0 and f"{f.gain:.0%}" not in f.together:
            yield f"{f.gain:.0%}: {f.together}"
        if abs(f.gain * f.step_us - (replayed(a.step) - before)) > 1e-3:
            yield f"{f.gain} of {f.step_us}"

    assert misses(add_up) == []


def test_a_change_is_worth_making_or_says_that_it_may_not_be() -> None:
    """At least 1% after those above, with a range that begins there; else one alone, of 2% at least.

    That it may is said with the range of the state that its row has.
    """

    def worth(a: Analysis, f: Front) -> Iterator[str]:
        for change in f.changes:
            if change.gain is None:
                continue
            least = 0.02 if change.may else 0.01
            if change.gain < least or (not change.may and change.gain_low < 0.01):
                yield change.amount
        if any(change.may for change in f.changes) and (len(f.changes) > 1 or f.sure != "no"):
            yield "one that may gain beside others"
        if f.changes and (f.changes[0].may or uncertainty(a) >= 1.0):
            last = f.changes[-1]
            part = (100 * max(0.0, 1 - us / f.step_us) for us in (last.after_high_us, last.after_low_us))
            if "may make the step {:.0f} to {:.0f}% shorter".format(*part) not in f.together:
                yield f.together

    assert misses(worth) == []


def test_nothing_is_said_to_gain_nothing_that_gains_something() -> None:
    """Many waits may gain a part of the step together, though none of them does alone."""

    def nothing(a: Analysis, f: Front) -> Iterator[str]:
        low = (a.step.recoverable_range_us or (0.0, 0.0))[0]
        gain = min(a.step.recoverable_us or 0.0, low)
        if not f.changes and len(real(a.findings)) > 1 and gain >= 0.011 * f.step_us:
            yield f"{f.together} {gain} of {f.step_us}"

    assert misses(nothing) == []


def test_a_state_has_one_range() -> None:
    """A first screen's step without all of its syncs, compiled, is the one behind `-v`."""

    def one(a: Analysis, f: Front) -> Iterator[str]:
        everything = {x.id for x in a.findings if not x.intended}
        ways = [a.remedies[c.remedy].launches or c.habit for c in f.changes if c.remedy is not None]
        compiles = sum(way.startswith((REDUCE_OVERHEAD, "launch-bound")) for way in ways)
        state = a.states.state(REDUCE_OVERHEAD, True) if a.states and compiles == 1 and len(ways) == 2 else None
        all_removed = everything <= {id for c in f.changes for id in c.findings}
        if state and all_removed and f.changes[-1].takes != time_and_range(state.us, state.range_us, f.step_us)[0]:
            yield f"{f.changes[-1].becomes}, and {state.us}"

    assert misses(one) == []


def test_the_first_change_is_about_what_the_verdict_names() -> None:
    """A sync first where syncs are the limit, an input's change where the input is."""

    def agree(a: Analysis, f: Front) -> Iterator[str]:
        first = next((change for change in f.changes if change.gain is not None), None)
        areas = {habit.id: habit.area for habit in a.habits}
        if first and a.step.bound is Bound.SYNC and not first.findings and ", or the " not in f.verdict:
            yield f"{f.verdict} {first.place}"
        if first and a.step.bound is Bound.INPUT and areas.get(first.habit) is not Area.INPUT:
            yield f"{f.verdict} {first.place}"

    assert misses(agree) == []


def test_the_hottest_line_or_op_of_a_host_bound_step_is_named() -> None:
    """It is named from a quarter of the step on; the verdict has its share."""

    def named(a: Analysis, f: Front) -> Iterator[str]:
        if f.most and (f.most.share < A_QUARTER or f"{f.most.share:.0%}" not in f.verdict):
            yield f"{f.verdict} {f.most.place}"
        if f.most and a.step.bound is not Bound.HOST:
            yield f.verdict

    assert misses(named) == []


def test_there_is_one_base() -> None:
    """All shares are of the step without the profiler, whose time under it stands elsewhere."""

    def one(a: Analysis, f: Front) -> Iterator[str]:
        if a.step.unprofiled_us and (f.step_us != a.step.unprofiled_us or "profiler" in f.step):
            yield f.step

    assert misses(one) == []


def device_work(a: Analysis, changes: Sequence[ListedChange]) -> float:
    """Return the device's work in the step after changes, of which some shorten it."""
    edits = [a.remedies[c.remedy].change for c in changes if c.remedy is not None]
    work = {row: left for edit in edits for row, left in edit.work}
    less = sum(float(a.trace.slices.dur[row]) * (1 - left) for row, left in work.items()) / 1e3 / a.step.count
    return min(a.step.device_busy_us - less, a.step.unprofiled_us or a.step.observed_us)


def test_a_range_has_two_ends_and_no_state_is_below_the_devices_work() -> None:
    """A later row is no surer than one that it contains, and has the device's work that the rows above leave."""

    def two_ends(a: Analysis, f: Front) -> Iterator[str]:
        text = render(a, "text", width=80)
        if re.search(r"up to \d", text):
            yield "up to"
        doubt = 0.0
        rows = [change for change in f.changes if change.gain is not None]
        for number, change in enumerate(rows, 1):
            low, high = change.after_low_us, change.after_high_us
            if not low <= change.after_us <= high:
                yield change.becomes
            if low < device_work(a, rows[:number]) - 1:
                yield f"{change.becomes}, the device works {device_work(a, rows[:number])}"
            if high - low < doubt - 1e-6 and low > a.step.device_busy_us and high < f.step_us:
                yield f"{change.becomes} is surer than the row above"
            doubt = high - low

    assert misses(two_ends) == []


def test_nothing_is_said_of_less_than_a_hundredth() -> None:
    """Percent are whole; no line says 0 µs."""

    def telling(a: Analysis, f: Front) -> Iterator[str]:
        text = render(a, "text", width=80)
        if re.search(r"\d\.\d+%|\b0 µs|<0\.1%|less than 1%", text):
            yield text

    assert misses(telling) == []


def test_sureness_is_what_the_numbers_leave() -> None:
    """Yes only of a steady step whose range's low end is half of the gain; no where the range includes 0."""

    def consistent(a: Analysis, f: Front) -> Iterator[str]:
        rows = [change for change in f.changes if change.gain is not None]
        if not f.why_sure.endswith("."):
            yield f.why_sure
        if f.sure == "yes" and rows and f.step_us - rows[-1].after_high_us < 0.5 * f.gain * f.step_us:
            yield f"{f.sure} {rows[-1].becomes}"
        if f.sure == "yes" and any(re.search("not recorded|no line", row.place) for row in rows if row.findings):
            yield f"{f.sure} {rows[0].place}"
        if f.sure != "no" and any(row.may for row in rows):
            yield f.sure

    assert misses(consistent) == []


def test_the_next_command_can_be_pasted() -> None:
    """It fits on a line of a terminal."""
    assert misses(lambda _, f: iter([f"{f.next}"] if len(" ".join(f.next)) > LINE else [])) == []


def test_the_first_screen_is_short_and_its_first_change_near_its_top() -> None:
    """At most 24 lines of 80 columns, 12 where nothing is to change; the first change in line 8 at the latest."""

    def screen(a: Analysis, f: Front) -> Iterator[str]:
        lines = render(a, "text", width=80).splitlines()
        if len(lines) > (24 if f.changes else 12) or max(map(len, lines)) > 80:
            yield f"{len(lines)} lines, {max(map(len, lines))} columns"
        if f.changes and not any(line.startswith(" 1. ") for line in lines[:8]):
            yield "\n".join(lines)
        if len(render(a, "markdown").splitlines()) > 30:
            yield "Markdown"

    assert misses(screen) == []


STALLS = sorted(FOLDER.glob("stalls/*.json.gz"))
CASES = [*STALLS, *sorted(FOLDER.glob("whatif/*.gz")), *sorted(FOLDER.glob("programs/recorded/*.gz"))]


@each("path", CASES, ids=lambda path: path.name.partition(".")[0])
def test_the_largest_gain_heads_the_list(path: Path) -> None:
    """The largest is taken of syncs and habits, whatever their gain is based on; nothing else is advised in its
    place.
    """
    analysis = analyzed(path)
    habits = [h for h in analysis.habits if h.basis not in (None, Basis.UPPER_BOUND)]
    if not analysis.remedies or not habits:
        return
    most = max(habits, key=lambda habit: habit.recoverable_us or 0.0)
    first = analysis.remedies[0]
    assert most.recoverable_us is not None
    assert first.alone_us >= most.recoverable_us - 1e-6
    gains = [r.alone_us for r in analysis.remedies if r.basis is not Basis.UPPER_BOUND]
    assert gains == sorted(gains, reverse=True)


@each("path", STALLS, ids=lambda path: path.name.partition(".")[0])
def test_every_stall_is_in_the_list_of_changes(path: Path) -> None:
    """Each habit with a gain has its entry, and the first screen a change."""
    analysis = analyzed(path)
    listed = {r.habit for r in analysis.remedies}
    assert {h.id for h in analysis.habits if h.basis} <= listed
    assert front_of(analysis).changes
