"""The result of `syncscan fix`: each change of the program, how it was verified, and what is left to the author."""

from __future__ import annotations

import enum
from typing import Annotated

import msgspec

from syncscan.model.json_text import about


class Safety(enum.Enum):
    """Side effects that a fix may have.

    SAFE: none. Results agree to rounding; output and exceptions are the same; memory grows by a constant at most, or by
    a number per step.
    UNSAFE: results agree, but memory use, laziness or the moment of an exception changes.
    MANUAL: only the author can decide.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


class SourceEdit(msgspec.Struct, frozen=True):
    """A span of a file's text and its replacement; lines and columns from 1, in characters, end excluded."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class FixGain(msgspec.Struct, frozen=True):
    """The projected gain of a fix per step."""

    us: float
    low_us: float
    high_us: float
    share: Annotated[float | None, about("of the step; null if that isn't known")]


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the program where the host waits."""

    file: Annotated[str, about("as the user named it, or relative to the working directory")]
    line: Annotated[int, about("first line of the statement, in the unpatched file")]
    end_line: int
    rule: str
    rewrite: Annotated[str, about("name of the rewrite; empty if the place is left to the author")]
    title: Annotated[str, about("the pattern that waits, in a few words")]
    change: Annotated[str, about("what the fix does, or the rule's advice")]
    safety: Safety
    why: Annotated[str, about("what else an unsafe fix changes, or why the author has to decide")]
    verified: bool
    how: Annotated[str, about("how the fix was verified, or why it wasn't")]
    waits: Annotated[int, about("number of waits here in the dry run")]
    applied: Annotated[bool, about("whether the fix is part of the patch")]
    changes: Annotated[
        tuple[SourceEdit, ...], about("edits to the unpatched file; empty where they build on another fix's")
    ] = ()
    gain: Annotated[FixGain | None, about("as projected; null without a recording")] = None
    shared: Annotated[bool, about("whether one wait stays here for several reads")] = False

    @property
    def gains_nothing(self) -> bool:
        """Whether a recording projects no gain."""
        return self.gain is not None and self.gain.high_us <= 0


class Suggested(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the lines that a finding is about."""

    diff: str
    """Unified diff of this change alone."""
    change: str
    """The change in a few words."""
    safety: Safety
    why: str
    """For an unsafe one what else changes."""
    verified: bool
    how: str
    """How it was verified, or why it wasn't."""
    changes: tuple[SourceEdit, ...]


class Patched(msgspec.Struct, frozen=True):
    """A file with its new text."""

    file: str
    path: str
    before: str
    after: str
    encoding: str
    diff: str

    @property
    def patch(self) -> bytes:
        """The difference in the file's own encoding, as `git apply` needs it; names are in UTF-8."""
        lines = self.diff.split("\n")
        encodings = ["utf-8"] * 2 + [self.encoding.removesuffix("-sig")] * len(lines)
        return b"\n".join(line.encode(of, "surrogateescape") for line, of in zip(lines, encodings, strict=False))


class Fixed(msgspec.Struct, frozen=True, kw_only=True):
    """The result of fixing a program."""

    program: str
    fixes: tuple[Fix, ...]
    """By file and line."""
    files: tuple[Patched, ...]
    """Those that the patch changes."""
    waits_before: int
    waits_after: int
    """How often the host waited in the whole dry run, as it was and with the patch."""
    waits_apart: int = 0
    """Those of the first number that are set-up or a checkpoint: what runs once, or saves the program's state."""
    tolerance: float
    """How far apart numbers may lie that are printed or computed, relative."""
    seconds: float
    notes: tuple[str, ...] = ()
    """Sentences about what the dry run couldn't see."""
    not_compared: tuple[str, ...] = ()
    """Output that differs between two unchanged runs, such as a file, with the difference."""
    unjudged: str = ""
    """Why it is unknown whether there is anything to fix, such as a program that fails; empty where it is known."""

    @property
    def diff(self) -> str:
        """The patch, as `git apply` takes it."""
        return "".join(file.diff for file in self.files)

    @property
    def patch(self) -> bytes:
        """The patch, each file's part in that file's encoding."""
        return b"".join(file.patch for file in self.files)

    @property
    def applied(self) -> tuple[Fix, ...]:
        """The fixes that are part of the patch."""
        return tuple(fix for fix in self.fixes if fix.applied)


__all__ = ["Fix", "FixGain", "Fixed", "Patched", "Safety", "SourceEdit", "Suggested"]
