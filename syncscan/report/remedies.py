"""Describe remedies in words: what to change and where, what that saves, how.

Names are as recorded: each renderer escapes them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence, Finding, Severity
from syncscan.model.habit import Basis
from syncscan.model.projection import Remedy
from syncscan.report import dry_run
from syncscan.report.phrases import (
    UNTIMED,
    figure,
    measurable,
    real,
    replayed,
    saving,
    spread,
    waited,
    whereabouts,
)
from syncscan.report.units import within

WORST = 3
"""Findings that replace remedies where nothing could be projected."""
PLACES = 3
"""Places that are named, of syncs that go together."""
FIXES = 2
"""Fixes that are shown, of syncs that go together; the findings have them all."""


class RemedyText(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the list of changes."""

    number: int
    """Position in the list, from 1."""
    what: str
    where: str
    """Line, scope and op; empty where unknown."""
    members: tuple[Finding, ...]
    """The syncs that it removes; empty for a habit."""
    habit: str
    """The habit's id; empty for syncs."""
    saves: str
    """Gain in words, e.g. `432 µs (9%)`; the cost where the gain isn't projected."""
    doubt: str
    """Range of the gain, what remains of it after the entries above, and the confidence."""
    fix: str


def describe(analysis: Analysis) -> tuple[RemedyText, ...]:
    """Return the remedies in order; where nothing was projected, the costliest findings without a saving."""
    if analysis.remedies:
        findings = {f.id: f for f in analysis.findings}
        return tuple(_remedy(n, r, analysis, findings) for n, r in enumerate(analysis.remedies, 1))
    if analysis.step.recoverable_us is not None:
        return ()
    return tuple(_unprojected(n, f, analysis) for n, f in enumerate(_worst(analysis), 1))


def _worst(analysis: Analysis) -> list[Finding]:
    """Return the findings with a notable cost; where waits can't be measured, the first that waits."""
    waits = real(analysis.findings)
    costly = [f for f in waits if f.severity in (Severity.HIGH, Severity.MEDIUM)]
    return costly[:WORST] or (waits[:1] if analysis.step.waits_withheld else [])


def _remedy(number: int, remedy: Remedy, analysis: Analysis, findings: dict[str, Finding]) -> RemedyText:
    members = [findings[id] for id in remedy.findings]
    habit = next((h for h in analysis.habits if h.id == remedy.habit), None)
    more = f", and {len(members) - 1} more, removed together" if len(members) > 1 else ""
    fixes = [habit.fix] if habit else [f.fix for f in members]
    if remedy.launches and analysis.states:
        more = ""
        fixes = [*fixes[:1], f'Then torch.compile(model, mode="{remedy.launches}").']
    return RemedyText(
        number=number,
        what=f"{remedy.what}{more}",
        where=_places(members) if members else "".join(habit.scope[-1:]) if habit else "",
        members=tuple(members),
        habit=remedy.habit,
        saves=figure(remedy.alone_us, remedy.basis, replayed(analysis.step), remedy.range_us),
        doubt=_doubt(remedy, number == 1, members, replayed(analysis.step)),
        fix=_together(list(dict.fromkeys(fixes))),
    )


def _together(fixes: list[str]) -> str:
    """Return the first fixes of syncs that go together, and how many the findings have besides."""
    more = len(fixes) - FIXES
    rest = f"… and {more} more fix{'es' * (more > 1)}, listed with their findings." if more > 0 else ""
    return " ".join([*fixes[:FIXES], *([rest] if rest else [])])


def _unprojected(number: int, f: Finding, analysis: Analysis) -> RemedyText:
    if dry_run.is_dry(analysis):
        saves, doubt = dry_run.often(f.per_step, analysis), dry_run.NOT_TIMED
    else:
        costs = f"waits {waited(f.wait_us)}, then the device is idle for {waited(f.bubble_us)}"
        saves, doubt = UNTIMED if f.wait_us is None else costs, "not projected"
    return RemedyText(
        number=number,
        what=f.title,
        where=whereabouts(f),
        members=(f,),
        habit="",
        saves=saves,
        doubt=doubt,
        fix=f.fix,
    )


def _places(members: Sequence[Finding]) -> str:
    places = [place for f in members if (place := whereabouts(f))]
    more = f" and {len(places) - PLACES} more" if len(places) > PLACES else ""
    return f"{', '.join(places[:PLACES])}{more}"


def _doubt(remedy: Remedy, first: bool, members: Sequence[Finding], step_us: float) -> str:
    if remedy.basis is Basis.UPPER_BOUND:
        return "not projected"
    doubts = [
        spread(remedy.range_us, step_us),
        "" if first or remedy.after_us is None else f"{_left(remedy)} after the fixes above",
        "" if remedy.launches else _alone(members, step_us),
        _sureness(remedy),
    ]
    return "; ".join(part for part in doubts if part)


def _sureness(remedy: Remedy) -> str:
    """Return how sure the cause is: `likely` for a medium confidence; empty for a high one."""
    sureness = {Confidence.HIGH: "", Confidence.MEDIUM: "likely"}
    return sureness.get(remedy.confidence, f"confidence {remedy.confidence.value}")


def _alone(members: Sequence[Finding], step_us: float) -> str:
    """Return what the best of several syncs saves without the others; empty for one."""
    if len(members) < 2:
        return ""
    gains = ((f.recoverable_us or 0.0, f.recoverable_range_us) for f in members if f.recoverable_range_us)
    us, limits = max(gains, default=(0.0, (0.0, 0.0)))
    return f"each alone {'at most ' if measurable(us, step_us) else ''}{saving(us, step_us, limits)}"


def _left(remedy: Remedy) -> str:
    return within(remedy.after_us, remedy.range_us) if remedy.after_us else "nothing measurable"
