"""What `lint` says of source code that nothing ran: guesses at syncs, with what allows them, and files left unread."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.finding import Diagnosis, Severity

LIMITS = (
    "Guesses from the source alone: nothing ran, so that no type or device was seen, and nothing was timed. "
    "A tensor on the CPU waits for nothing. To know: syncscan dryrun, which needs no GPU, or syncscan profile."
)
"""What every report of guesses says of them."""


class Guess(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the source that would, by its shape, make the host wait for the device."""

    diagnosis: Diagnosis
    """As of a finding; its confidence is never high."""
    file: str
    """As it was named or found; `-` for standard input."""
    line: int
    """From 1; of a notebook within its cell."""
    column: int
    """From 1, in characters."""
    end_line: int
    function: str
    """The function with what it is nested in, `Trainer.step`; empty on a module's own level."""
    scope: tuple[str, ...]
    """Names of the `record_function` blocks around it, outermost first."""
    code: str
    """The expression."""
    place: str
    """Where it stands: `a training step's loop (line 12)`."""
    because: str
    """A sentence: why it was guessed to wait, and to run in each step."""
    severity: Severity
    """`medium`; `low` where it runs seldom: in an evaluation, or below a condition such as `step % 100 == 0`."""
    cell: int | None = None
    """The number of a notebook's cell, from 1."""

    @property
    def rule(self) -> str:
        """The id of the rule that knows its cause."""
        return self.diagnosis.rule

    @property
    def where(self) -> str:
        """`train.py:12:5`, as editors read it; in a notebook `demo.ipynb:cell 3:12:5`."""
        cell = f"cell {self.cell}:" if self.cell else ""
        return f"{self.file}:{cell}{self.line}:{self.column}"


class Allowed(msgspec.Struct, frozen=True):
    """A guess that the source, or the project's file, allows."""

    guess: Guess
    by: str
    """`comment`, `allowed block` or `allow-list`."""
    reason: str


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """All that was said of some files."""

    guesses: tuple[Guess, ...]
    """By file, in the order in which files were named, and by line."""
    allowed: tuple[Allowed, ...] = ()
    notes: tuple[str, ...] = ()
    """Comments on a guess's line that don't allow it, and expired entries of the allow-list: a sentence each."""
    files: int = 0
    """How many were read."""
    unread: tuple[str, ...] = ()
    """Files that couldn't be read: a sentence each."""
    unread_named: bool = False
    """Whether one of those was named itself, and not found in a folder."""
    hidden: int = 0
    """Guesses that `--select` and `--ignore` leave out."""

    @property
    def shown_files(self) -> Sequence[str]:
        """The files with guesses, in their order."""
        return tuple(dict.fromkeys(guess.file for guess in self.guesses))
