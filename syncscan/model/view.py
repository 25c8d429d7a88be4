"""Select and order the findings and habits that a reader wants to see, and count those that each option hides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.habit import Basis, Habit


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Which findings and habits a report shows; statements on the step always cover all of them."""

    select: tuple[str, ...] = ()
    """Globs of rules to show; all without any."""
    ignore: tuple[str, ...] = ()
    """Globs of rules to hide."""
    user_only: bool = False
    """Hide findings outside of user code; habits have no owner and stay."""
    least_us: float = 0.0
    """Hide smaller single savings, µs per step; unprojected ones stay."""
    least_share: float = 0.0
    """Hide smaller single savings, as a fraction of the step."""
    top: int | None = None
    """Most entries to show, findings and habits together."""


EVERYTHING = View()


class Hidden(msgspec.Struct, frozen=True):
    """Results that one option of a view hides."""

    by: str
    """Option on the command line: `--select`."""
    findings: int
    habits: int


class Shown(msgspec.Struct, frozen=True):
    """Findings and habits that a view shows, and those it hides."""

    ranked: tuple[Finding | Habit, ...]
    """Findings and habits together, largest saving first."""
    findings: tuple[Finding, ...]
    habits: tuple[Habit, ...]
    hidden: tuple[Hidden, ...]


def shown(view: View, findings: Sequence[Finding], habits: Sequence[Habit], step_us: float) -> Shown:
    """Apply a view option by option: what two options hide counts for the first."""
    left = ranked(findings, habits)
    hidden = []
    for option, keeps in _options(view, step_us):
        removed = {x.id for x in left if not keeps(x)}
        if removed:
            hidden.append(_hidden(option, [x for x in left if x.id in removed]))
        left = [x for x in left if x.id not in removed]
    if view.top is not None and len(left) > view.top:
        hidden.append(_hidden("--top", left[view.top :]))
        left = left[: view.top]
    ids = {x.id for x in left}
    return Shown(
        tuple(left), tuple(f for f in findings if f.id in ids), tuple(h for h in habits if h.id in ids), tuple(hidden)
    )


def ranked(findings: Sequence[Finding], habits: Sequence[Habit]) -> list[Finding | Habit]:
    """Sort by single saving, then upper bounds, unprojected entries and intended waits."""
    return sorted([*findings, *habits], key=_rank)


def _rank(x: Finding | Habit) -> tuple[int, float]:
    if isinstance(x, Finding) and x.intended:
        return 3, 0.0
    if x.recoverable_us is None:
        return 2, 0.0
    return int(isinstance(x, Habit) and x.basis is Basis.UPPER_BOUND), -round(x.recoverable_us, 3)


def _options(view: View, step_us: float) -> Iterator[tuple[str, Callable[[Finding | Habit], bool]]]:
    least = max(view.least_us, view.least_share * step_us)
    if view.select:
        yield "--select", lambda x: matches(x.rule, view.select)
    if view.ignore:
        yield "--ignore", lambda x: not matches(x.rule, view.ignore)
    if view.user_only:
        yield "--user-only", lambda x: isinstance(x, Habit) or x.owner == "user"
    if least:
        yield "--min-saves", lambda x: x.recoverable_us is None or x.recoverable_us >= least


def matches(rule: str, globs: Sequence[str]) -> bool:
    """Return whether a rule's name matches one of these globs, case-sensitively."""
    return any(fnmatchcase(rule, glob) for glob in globs)


def _hidden(option: str, removed: Sequence[Finding | Habit]) -> Hidden:
    findings = sum(isinstance(x, Finding) for x in removed)
    return Hidden(option, findings, len(removed) - findings)
