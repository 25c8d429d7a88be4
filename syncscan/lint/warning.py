"""Lint results for source code that wasn't run: warnings of possible syncs, exceptions, and unreadable files."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.finding import Diagnosis, Severity

LIMITS = (
    "These warnings come from the source alone: nothing ran, so types and devices are unknown, and nothing was timed. "
    "Tensors on the CPU never wait. To verify: syncscan dryrun (needs no GPU) or syncscan profile."
)
"""Caveat of every lint report."""


class LintWarning(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the source whose pattern makes the host wait for the device."""

    diagnosis: Diagnosis
    """Diagnosis, as for a finding; its confidence is never high."""
    file: str
    """File as it was named or discovered; `-` for standard input."""
    line: int
    """Line, from 1; in a notebook, within its cell."""
    column: int
    """Column, from 1, in characters."""
    end_line: int
    function: str
    """Qualified name of the function, `Trainer.step`; empty at module level."""
    scope: tuple[str, ...]
    """Names of the surrounding `record_function` blocks, outermost first."""
    code: str
    """The expression."""
    place: str
    """The surrounding code: `a training step's loop (line 12)`."""
    because: str
    """Why it may wait, and run in each step, as a sentence."""
    severity: Severity
    """`medium`; `low` where it runs rarely: in an evaluation, or under a condition such as `step % 100 == 0`."""
    cell: int | None = None
    """Number of a notebook's cell, from 1."""

    @property
    def rule(self) -> str:
        """Id of its rule."""
        return self.diagnosis.rule

    @property
    def where(self) -> str:
        """Position as editors read it: `train.py:12:5`, or in a notebook `demo.ipynb:cell 3:12:5`."""
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.file}:{cell}{self.line}:{self.column}"


class AllowedWarning(msgspec.Struct, frozen=True):
    """A lint warning that the source or the project's configuration allows."""

    warning: LintWarning
    by: str
    """`comment`, `allowed block` or `allow-list`."""
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
        return tuple(dict.fromkeys(warning.file for warning in self.warnings))
