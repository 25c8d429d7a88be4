"""A project's limits for its step, with exceptions, and the verdict on an analysis."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from syncscan.facts.allow_comments import Comment
from syncscan.model.finding import Finding
from syncscan.model.race import Race
from syncscan.model.step import NOT_MEASURED, StepSummary


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Upper limits of a step, for all its syncs or those that a selector names; None is no limit."""

    by: str = ""
    """`scope`, `phase`, `rule` or `owner`; empty for the whole step."""
    glob: str = ""
    syncs: float | None = None
    """Syncs per step."""
    wait_ms: float | None = None
    """Wait in ms per step."""
    recoverable: float | None = None
    """Fraction of the step that removing the syncs would save, 0 to 1."""
    held_up: float | None = None
    """Fraction of a job's step by which its latest ranks delay the others, 0 to 1; unused for a single rank."""

    def __str__(self) -> str:
        """Return the target of the limit: `the step`, `scope loss*`."""
        return f"{self.by} {self.glob}" if self.by else "the step"


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Syncs that may stay: every given glob has to match."""

    rule: str = ""
    scope: str = ""
    op: str = ""
    line: str = ""
    """`FILE:LINE`, with the file as in the report or any end of its path; without `:LINE`, any line of it."""
    reason: str = ""
    expires: datetime.date | None = None
    """The last day on which it applies."""

    def __str__(self) -> str:
        """Return what it names: `scope log*, rule item`."""
        named = (("rule", self.rule), ("scope", self.scope), ("op", self.op), ("line", self.line))
        return ", ".join(f"{name} {glob}" for name, glob in named if glob)

    def expired(self, today: datetime.date) -> bool:
        return self.expires is not None and self.expires < today


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """A project's limits and exceptions."""

    limits: tuple[Limit, ...]
    allowed: tuple[Allowance, ...] = ()
    races: float | None = None
    """Races that a dry run may have; None is no limit."""
    baseline: str = ""
    """A file of known syncs and races."""
    source: str = ""
    """Where the rules are defined: a file, or the command line."""


class By(str, enum.Enum):
    """The reason why a finding is exempt."""

    ALLOW_LIST = "allow-list"
    COMMENT = "comment"
    BASELINE = "baseline"


Checked = TypeVar("Checked", Finding, Race)


class Exempt(msgspec.Struct, Generic[Checked], frozen=True):
    """A finding or race that no limit counts, and why."""

    of: Checked
    by: By
    reason: str


def sort_out(
    checked: Iterable[Checked],
    rule: Callable[[Checked], str],
    names: Callable[[Allowance, Checked], bool],
    comment: Callable[[Checked], Comment | None],
    reasons: Mapping[str, str],
    rules: Rules,
    today: datetime.date,
) -> tuple[tuple[Checked, ...], tuple[Exempt[Checked], ...], frozenset[int]]:
    """Return what counts, what the allow-list, a comment or the baseline exempts, and the entries that name any.

    Entries are numbers in the allow-list; one exempts up to the day on which it expires. `reasons` has those of the
    ids in the baseline.
    """
    counted, exempt, used = list[Checked](), list[Exempt[Checked]](), set[int]()
    for item in checked:
        written, listed = comment(item), [n for n, entry in enumerate(rules.allowed) if names(entry, item)]
        used.update(listed)
        valid = next((rules.allowed[n] for n in listed if not rules.allowed[n].expired(today)), None)
        if valid:
            exempt.append(Exempt(item, By.ALLOW_LIST, valid.reason))
        elif written and written.allows(rule(item)):
            exempt.append(Exempt(item, By.COMMENT, written.reason))
        elif item.id in reasons:
            exempt.append(Exempt(item, By.BASELINE, reasons[item.id]))
        else:
            counted.append(item)
    return tuple(counted), tuple(exempt), frozenset(used)


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """An exceeded limit: a sentence with both numbers, and the findings or races behind it, worst first."""

    limit: Limit
    sentence: str
    findings: tuple[str, ...] = ()
    """Their ids, worst first."""
    races: tuple[str, ...] = ()
    """Their ids."""


class CheckVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one recording is within the limits."""

    path: str
    violations: tuple[Violation, ...]
    counted: tuple[Finding, ...]
    """Findings that were checked against the limits."""
    exempt: tuple[Exempt[Finding], ...]
    notes: tuple[str, ...]
    """Further actions: expired entries, comments that allow nothing."""
    unused: tuple[str, ...] = ()
    """Allow-list entries and baseline entries that match nothing in this recording."""
    stale: tuple[str, ...] = ()
    """Notes on comments in this recording's files without a sync on their line."""
    met: tuple[str, ...] = ()
    """Notes that other such comments would cause."""
    races: tuple[Race, ...] = ()
    """Races of a dry run that were checked against their limit."""
    exempt_races: tuple[Exempt[Race], ...] = ()
    step: StepSummary = NOT_MEASURED
    """The recording's step, of which gains are a part; that of a job isn't measured."""

    @property
    def passed(self) -> bool:
        """Return whether every limit is kept."""
        return not self.violations

    @property
    def all_notes(self) -> tuple[str, ...]:
        """All notes besides the violations."""
        return (*self.notes, *self.unused, *self.stale)

    @property
    def guilty(self) -> tuple[Finding, ...]:
        """The findings of all violations, each once."""
        return self.named(dict.fromkeys(id for v in self.violations for id in v.findings))

    @property
    def guilty_races(self) -> tuple[Race, ...]:
        """The races of all violations."""
        ids = {id for v in self.violations for id in v.races}
        return tuple(race for race in self.races if race.id in ids)

    def named(self, ids: Iterable[str]) -> tuple[Finding, ...]:
        """Return the findings with these ids, of those that were checked."""
        counted = {f.id: f for f in self.counted}
        return tuple(counted[id] for id in ids)
