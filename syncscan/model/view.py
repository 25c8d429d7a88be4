"""From findings and habits to those that a reader asked to see, in one order, and how many each option hides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.habit import Basis, Habit


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Which findings and habits a report shows. What it says of the step is of all of them."""

    select: tuple[str, ...] = ()
    """Globs of rules; without any, all."""
    ignore: tuple[str, ...] = ()
    """Globs of rules."""
    user_only: bool = False
    """No findings in other code than the user's; habits have no owner and stay."""
    least_us: float = 0.0
    """What saves less alone is hidden, µs a step; what isn't projected isn't known to, and stays."""
    least_share: float = 0.0
    """The same as a part of the step."""
    top: int | None = None
    """At most so many, findings and habits counted together."""


EVERYTHING = View()


class Hidden(msgspec.Struct, frozen=True):
    """What one option of a view hides."""

    option: str
    """As on the command line: `--select`."""
    findings: int
    habits: int


class Shown(msgspec.Struct, frozen=True):
    """What a view lets through, each in its order, and what it doesn't."""

    ranked: tuple[Finding | Habit, ...]
    """Findings and habits together, the largest saving first."""
    findings: tuple[Finding, ...]
    habits: tuple[Habit, ...]
    hidden: tuple[Hidden, ...]


def shown(view: View, findings: Sequence[Finding], habits: Sequence[Habit], step_us: float) -> Shown:
    """Apply a view, one option after the other: what two options hide counts for the first.

    Args:
        view: what is wanted.
        findings: of an analysis, in its order.
        habits: likewise.
        step_us: the step that savings are parts of, in µs.
    """
    left = ranked(findings, habits)
    hidden = []
    for option, keeps in _options(view, step_us):
        gone = {x.id for x in left if not keeps(x)}
        if gone:
            hidden.append(_hidden(option, [x for x in left if x.id in gone]))
        left = [x for x in left if x.id not in gone]
    if view.top is not None and len(left) > view.top:
        hidden.append(_hidden("--top", left[view.top :]))
        left = left[: view.top]
    ids = {x.id for x in left}
    return Shown(
        tuple(left), tuple(f for f in findings if f.id in ids), tuple(h for h in habits if h.id in ids), tuple(hidden)
    )


def ranked(findings: Sequence[Finding], habits: Sequence[Habit]) -> list[Finding | Habit]:
    """By what each saves alone; then upper bounds, what isn't projected, and intended waits."""
    return sorted([*findings, *habits], key=_rank)


def _rank(x: Finding | Habit) -> tuple[int, float]:
    if isinstance(x, Finding) and x.diagnosis.intended:
        return 3, 0.0
    if x.gain is None:
        return 2, 0.0
    bound = isinstance(x, Habit) and x.gain is not None and x.gain.basis is Basis.UPPER_BOUND
    return int(bound), -round(x.gain.recoverable_us, 3)


def _options(view: View, step_us: float) -> Iterator[tuple[str, Callable[[Finding | Habit], bool]]]:
    least = max(view.least_us, view.least_share * step_us)
    if view.select:
        yield "--select", lambda x: matches(x.rule, view.select)
    if view.ignore:
        yield "--ignore", lambda x: not matches(x.rule, view.ignore)
    if view.user_only:
        yield "--user-only", lambda x: isinstance(x, Habit) or x.where.owner == "user"
    if least:
        yield "--min-saves", lambda x: x.gain is None or x.gain.recoverable_us >= least


def matches(rule: str, globs: Sequence[str]) -> bool:
    """Whether a rule's name fits one of these globs, case told apart."""
    return any(fnmatchcase(rule, glob) for glob in globs)


def _hidden(option: str, gone: Sequence[Finding | Habit]) -> Hidden:
    findings = sum(isinstance(x, Finding) for x in gone)
    return Hidden(option, findings, len(gone) - findings)
