"""Replay one step after each choice of fixes, to be drawn on one ruler: host above device, recorded above replayed.

Plain values: `before_after_svg` draws them for pages and files.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.habit import Basis, Change
from syncscan.model.projection import Schedule, StepAfter
from syncscan.report import step_lanes
from syncscan.report.phrases import figure, measurable, real, replayed, saving, spread, whereabouts
from syncscan.report.remedies import RemedyText
from syncscan.report.states import COMPILED
from syncscan.report.step_lanes import Arrow, Lanes
from syncscan.report.story import Story
from syncscan.report.timeline_intervals import recorded_step, step_name
from syncscan.report.units import duration, percent, range_of, within

MAX_FIXES = 4
"""Fixes that can be chosen one by one; all further ones are one choice. Each set of them is replayed: 16 at most."""
MAX_LAUNCHES = 40_000
"""Launches of a step up to which each set is replayed; above, only the first fixes one after the other."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """A choice: one remedy, or several changes together."""

    title: str
    where: str = ""
    saves: str = ""
    """Its saving alone, in words."""
    findings: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    remedy: int | None = None
    """Index in the story's list of changes; None for what isn't listed."""
    alone: tuple[float, tuple[float, float]] | None = None
    """Saving and its range in µs as the list of changes has them; None where only the replay says it."""


class Scene(msgspec.Struct, frozen=True):
    """The step after some fixes; `us` is predicted, without the profiler where that is known."""

    fixes: tuple[int, ...]
    us: float
    range_us: tuple[float, float]
    lanes: Lanes
    moves: tuple[Arrow, ...]
    sentence: str


class BeforeAfter(msgspec.Struct, frozen=True, kw_only=True):
    """One step before and after: `scenes` has an entry for each set of fixes that can be shown."""

    name: str
    """`step 6`, or `the whole trace`."""
    length: float
    """The ruler's length, ns."""
    recorded: Lanes
    causes: tuple[Arrow, ...]
    fixes: tuple[Choice, ...]
    scenes: tuple[Scene, ...]
    base_us: float
    """The step that projections start from, µs."""
    device_us: float
    """The device's own work in it, below which no fix on the host leads, µs."""
    caption: str
    measured: bool = False
    """Whether the step after is a recording as well, not a replay."""

    def scene(self, *fixes: int) -> Scene | None:
        """Return the step after exactly these fixes; None where that set wasn't replayed."""
        return next((s for s in self.scenes if s.fixes == tuple(sorted(fixes))), None)

    @property
    def shown(self) -> Scene:
        """The scene shown first: with all fixes."""
        return max(self.scenes, key=lambda scene: len(scene.fixes))

    @property
    def falls(self) -> tuple[Scene, ...]:
        """The scenes of a waterfall: after the first fix, after the first two, and so on."""
        steps = (self.scene(*range(count)) for count in range(1, len(self.fixes) + 1))
        return tuple(scene for scene in steps if scene)

    @property
    def limit_us(self) -> float | None:
        """Where the waterfall ends: the device's own work; None where a fix changes that work."""
        return self.device_us if self.device_us <= self.shown.us else None


def before_after(analysis: Analysis, story: Story) -> BeforeAfter | None:
    """Return the step of the costliest wait before and after its fixes; None where no step can be replayed."""
    now, base = recorded_step(analysis), replayed(analysis.step)
    if now is None or now.schedule is None or not base:
        return None
    plan, fixes = now.schedule, _fixes(analysis, story)
    sets = _sets(len(fixes), len(plan.rows))
    replays: dict[tuple[int, ...], StepAfter | None] = {}
    for s in sets:
        after = _after(analysis, [fixes[k] for k in s], plan.begin, base - now.us)
        replays[s] = after and _no_longer(after, [replays.get(s[:k] + s[k + 1 :]) for k in range(len(s))])
    drawn = [(s, after, after.schedule) for s, after in replays.items() if after and after.schedule]
    length = float(max(plan.end, *(replay.replayed_end for *_, replay in drawn)) - plan.begin)
    scenes = tuple(_scene(analysis, fixes, plan, s, after, length) for s, after, _ in drawn)
    name = step_name(analysis.trace, plan)
    return BeforeAfter(
        name=name,
        length=length,
        recorded=step_lanes.recorded(analysis, plan, length),
        causes=tuple(step_lanes.causes(analysis, plan)),
        fixes=tuple(_priced(fix, k, scenes, base) for k, fix in enumerate(fixes)),
        scenes=scenes,
        base_us=base,
        device_us=analysis.step.device_busy_us,
        caption=_caption(analysis, name),
    )


# the fixes, and the sets of them


def _fixes(analysis: Analysis, story: Story) -> list[Choice]:
    """Return the fixes that a replay can draw: those of the list of changes, and the syncs that it leaves out."""
    drawable = [fix for at, text in enumerate(story.remedies) if (fix := _of_remedy(analysis, text, at))]
    listed = [fix for fix in drawable if not any(_within(fix, other) for other in drawable)]
    covered = {id for fix in listed for id in fix.findings}
    uncovered = [f.of for f in story.findings if f.of.id not in covered and real([f.of])]
    if analysis.step.recoverable_us is None:
        uncovered = []
    if not listed and len(uncovered) > 1:
        costliest = sorted(uncovered, key=lambda f: -(f.wait_us + f.bubble_us))
        count = len(uncovered) if len(uncovered) <= MAX_FIXES else MAX_FIXES - 1
        listed, uncovered = [_alone(f) for f in costliest[:count]], costliest[count:]
    if uncovered:
        listed.append(_others(uncovered, bool(listed)))
    listed = [replace(fix, title=_apart(fix, listed)) for fix in listed]
    if len(listed) <= MAX_FIXES:
        return listed
    rest = listed[MAX_FIXES - 1 :]
    findings = tuple(dict.fromkeys(id for fix in rest for id in fix.findings))
    further = Choice(title=f"{len(rest)} further changes", findings=findings, changes=_changes(rest))
    return [*listed[: MAX_FIXES - 1], further]


def _within(fix: Choice, other: Choice) -> bool:
    """Return whether another fix does all that this one does, and more: it also compiles the step without its syncs."""
    return bool(other.changes) and not fix.changes and set(fix.findings) <= set(other.findings)


def _apart(fix: Choice, fixes: Sequence[Choice]) -> str:
    """Return a fix's title, with its place where another one has the same title."""
    several = sum(other.title == fix.title for other in fixes) > 1
    return f"{fix.title} ({fix.where.partition(' · ')[0]})" if several and fix.where else fix.title


def _alone(f: Finding) -> Choice:
    return Choice(title=f.title, where=whereabouts(f), findings=(f.id,))


def _others(findings: Sequence[Finding], besides: bool) -> Choice:
    if len(findings) == 1:
        return _alone(findings[0])
    title = f"the other {len(findings)} syncs" if besides else f"all {len(findings)} syncs"
    return Choice(title=title, findings=tuple(f.id for f in findings))


def _of_remedy(analysis: Analysis, text: RemedyText, at: int) -> Choice | None:
    """Return a remedy as a choice; None for what a replay can't draw: samples and upper bounds."""
    if text.basis is not Basis.REPLAY:
        return None
    remedy = analysis.remedies[text.number - 1]
    habit = next((h for h in analysis.habits if h.id == text.habit), None)
    if habit is not None and not habit.changes:
        return None
    return Choice(
        title=f"{text.what}; then {COMPILED[remedy.launches]}" if remedy.launches else text.what,
        where=text.where,
        saves=text.saves,
        findings=tuple(m.id for m in text.members),
        changes=habit.changes[:1] if habit else (remedy.compiled,) if remedy.launches else (),
        remedy=at,
        alone=(remedy.alone_us, remedy.range_us),
    )


def _changes(fixes: Sequence[Choice]) -> tuple[Change, ...]:
    return tuple(change for fix in fixes for change in fix.changes)


def _sets(count: int, launches: int) -> list[tuple[int, ...]]:
    """Return the sets of fixes to replay: each, or for a long step one fix more each time."""
    if launches > MAX_LAUNCHES:
        return [tuple(range(k)) for k in range(count + 1)]
    return [chosen for k in range(count + 1) for chosen in itertools.combinations(range(count), k)]


def _after(analysis: Analysis, fixes: Sequence[Choice], at: int, shift: float) -> StepAfter | None:
    """Return the step after these fixes; `shift` is how many µs longer than its replay the projections' step is."""
    findings = tuple(dict.fromkeys(id for fix in fixes for id in fix.findings))
    projector = analysis.projector
    after = projector.after(findings, _changes(fixes), at=at) if projector else None
    if after is None:
        return None
    base, alone = replayed(analysis.step), fixes[0].alone if len(fixes) == 1 else None
    if alone is None:
        low, high = after.range_us
        us = min(after.us + shift, base)
        return StepAfter(us, (min(max(0.0, low + shift), us), min(base, max(us, high + shift))), after.schedule)
    us, (low, high) = alone
    return StepAfter(base - us, (max(0.0, base - high), max(0.0, base - low)), after.schedule)


def _no_longer(after: StepAfter, without_one: Sequence[StepAfter | None]) -> StepAfter:
    """Return the step after some fixes, which takes no longer than after all of them but one.

    A single fix saves what the list of changes says, which may be more than it saves in a replay together with others.
    """
    us = min([after.us, *(fewer.us for fewer in without_one if fewer)])
    low, high = after.range_us
    return StepAfter(us, (min(low, us), high), after.schedule)


def _scene(
    analysis: Analysis, fixes: Sequence[Choice], now: Schedule, chosen: tuple[int, ...], after: StepAfter, length: float
) -> Scene:
    plan, chosen_fixes = after.schedule, [fixes[k] for k in chosen]
    assert plan is not None
    return Scene(
        fixes=chosen,
        us=after.us,
        range_us=after.range_us,
        lanes=step_lanes.replayed(analysis, now, plan, _changes(chosen_fixes), length),
        moves=tuple(step_lanes.moves(analysis, now, plan, {id for fix in chosen_fixes for id in fix.findings})),
        sentence=_sentence(after, replayed(analysis.step)) if chosen else "Nothing changed: the step as it is.",
    )


# words


def _priced(fix: Choice, number: int, scenes: Sequence[Scene], base: float) -> Choice:
    """Return a fix with its individual saving, where the list of changes doesn't say it."""
    alone = next((s for s in scenes if s.fixes == (number,)), None)
    if fix.saves or alone is None:
        return fix
    us, (low, high) = base - alone.us, alone.range_us
    return replace(fix, saves=figure(us, Basis.REPLAY, base, (base - high, base - low)))


def _caption(analysis: Analysis, name: str) -> str:
    profiled, count = analysis.step.unprofiled_us is not None, analysis.step.count
    drawn = f"{name.capitalize()} as recorded{', with the profiler' if profiled else ''}"
    of = f"means of {count} steps" if count > 1 else "of one step" if profiled else ""
    return f"{drawn}; times in words are {of}{' without it' if profiled else ''}." if of else f"{drawn}."


def _sentence(after: StepAfter, base: float) -> str:
    gain, (low, high) = base - after.us, after.range_us
    took = f"{duration(base)} → {within(after.us, after.range_us)}"
    if measurable(gain, base):
        return f"{took} ({range_of(after.range_us)}): {percent(gain, base)} shorter"
    limits = (base - high, base - low)
    most = f" ({spread(limits, base)})" if measurable(limits[1], base) else ""
    return f"{took}: saves {saving(gain, base, limits)}{most}"
