"""Lint results for source code that wasn't run: warnings of possible syncs, exceptions, and unreadable files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from syncscan.model.finding import Cause, Confidence, Severity
from syncscan.model.json_text import about, written

LIMITS = (
    "These warnings come from the source alone: nothing ran, so types and devices are unknown, and nothing was timed. "
    "Tensors on the CPU never wait. To verify: syncscan dryrun (needs no GPU) or syncscan profile."
)
"""Caveat of every lint report."""


class WarningSource(msgspec.Struct, frozen=True):
    """Source position of a lint warning."""

    file: str
    """File as it was named or discovered; `-` for standard input."""
    line: Annotated[int, about("from 1; in a notebook, within the cell")]
    column: Annotated[int, about("from 1, in characters")]
    end_line: int
    cell: Annotated[int | None, about("the number of the notebook cell, from 1")]
    function: str
    """Qualified name of the function, `Trainer.step`; empty at module level."""
    code: Annotated[str, about("the expression")]

    def __str__(self) -> str:
        """Return the position as editors read it: `train.py:12:5`, or in a notebook `demo.ipynb:cell 3:12:5`."""
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.file}:{cell}{self.line}:{self.column}"


class LintWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the source that matches the pattern of a sync."""

    rule: str
    name: str
    cause: Cause
    severity: Severity
    """`medium`; `low` where it runs rarely: in an evaluation, or under a condition such as `step % 100 == 0`."""
    confidence: Confidence
    """Never high."""
    scope: tuple[str, ...]
    """Names of the surrounding `record_function` blocks, outermost first."""
    source: WarningSource
    place: Annotated[str, about("the loop or function that runs in every step")]
    because: Annotated[str, about("why it may wait, and run in every step")]
    title: str
    why: str
    fix: str
    when_fine: str

    def allowed(self, by: str, reason: str) -> AllowedWarning:
        """Return the warning as one that `comment`, `allowed block` or `allow-list` allows."""
        return written(AllowedWarning, self, by=by, reason=reason)


class AllowedWarning(LintWarning, frozen=True, kw_only=True):
    """A lint warning that the source or the project's configuration allows."""

    by: str
    reason: str


class LintResult(msgspec.Struct, frozen=True, kw_only=True):
    """Lint results of some files."""

    warnings: tuple[LintWarning, ...]
    """Warnings by file, in the order in which files were named, and by line."""
    allowed: tuple[AllowedWarning, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes on comments that don't allow the warning on their line, and on expired allow-list entries."""
    files: int = 0
    """Number of files read."""
    unread: tuple[str, ...] = ()
    """Unreadable files, one sentence each."""
    unread_named: bool = False
    """Whether one of those was named explicitly rather than discovered in a folder."""
    hidden: int = 0
    """Warnings hidden by `--select` and `--ignore`."""

    @property
    def shown_files(self) -> Sequence[str]:
        """The files with warnings, in order."""
        return tuple(dict.fromkeys(warning.source.file for warning in self.warnings))
