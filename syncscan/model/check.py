"""What a project allows its step: limits with exceptions, and the verdict on an analysis that is held to them."""

from __future__ import annotations

import datetime
import enum

import msgspec

from syncscan.model.finding import Finding


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a step may have, of all its syncs or of those that a selector names; None is no limit."""

    by: str = ""
    """`scope`, `phase`, `rule` or `owner`; empty for the whole step."""
    glob: str = ""
    syncs: float | None = None
    """A step."""
    wait_ms: float | None = None
    """A step."""
    recoverable: float | None = None
    """The part of the step that removing them would save, 0 to 1."""
    held_up: float | None = None
    """The part of a job's step by which its latest ranks hold the others up, 0 to 1; nothing of a single rank."""

    def __str__(self) -> str:
        """What it is of: `the step`, `scope loss*`."""
        return f"{self.by} {self.glob}" if self.by else "the step"


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Syncs that are meant to stay: every glob that is given has to match."""

    rule: str = ""
    scope: str = ""
    op: str = ""
    line: str = ""
    """Of `FILE:LINE`, the file as the report names it or any end of its path; without `:LINE` of any line in it."""
    reason: str
    expires: datetime.date | None = None
    """The last day on which it counts."""

    def __str__(self) -> str:
        """What it names: `scope log*, rule item`."""
        named = (("rule", self.rule), ("scope", self.scope), ("op", self.op), ("line", self.line))
        return ", ".join(f"{name} {glob}" for name, glob in named if glob)


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What a project asks of its step."""

    limits: tuple[Limit, ...]
    allowed: tuple[Allowance, ...] = ()
    baseline: str = ""
    """A file of what was known before."""
    source: str = ""
    """Where this stands: a file, or the command line."""


class By(str, enum.Enum):
    """What exempts a finding."""

    ALLOW_LIST = "allow-list"
    COMMENT = "comment"
    BASELINE = "baseline"


class Exempt(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that counts for no limit, and why."""

    finding: Finding
    by: By
    reason: str


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that isn't kept: a sentence with both numbers, and the findings that make it up, the worst first."""

    limit: Limit
    sentence: str
    findings: tuple[Finding, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether one recording keeps the limits."""

    path: str
    violations: tuple[Violation, ...]
    counted: tuple[Finding, ...]
    """Findings that the limits were held against."""
    exempt: tuple[Exempt, ...]
    notes: tuple[str, ...]
    """What else to do: entries that have expired, comments that allow nothing."""
    unused: tuple[str, ...] = ()
    """What fits nothing in this recording: entries of the allow-list, what the baseline knows."""
    stale: tuple[str, ...] = ()
    """What is said of comments in files that this recording names, with none of its syncs on their line."""
    met: tuple[str, ...] = ()
    """What would be said of the others."""

    @property
    def passed(self) -> bool:
        """Whether every limit is kept."""
        return not self.violations

    @property
    def said(self) -> tuple[str, ...]:
        """All that there is to say beside the violations."""
        return (*self.notes, *self.unused, *self.stale)

    @property
    def guilty(self) -> tuple[Finding, ...]:
        """The findings of all violations, each once."""
        return tuple({f.id: f for v in self.violations for f in v.findings}.values())
