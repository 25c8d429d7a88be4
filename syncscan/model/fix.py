"""The result of `syncscan fix`: each change of the program, how it was verified, and what is left to the author."""

from __future__ import annotations

import enum

import msgspec


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
    """The projected gain of a fix, in µs per step and as a share of the step."""

    us: float
    low_us: float
    high_us: float
    share: float | None


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the program where the host waits."""

    file: str
    """As the user named it, or relative to the working directory."""
    line: int
    end_line: int
    """Last line of the statement, in the file before the patch."""
    rule: str
    rewrite: str
    """Which rewrite; empty of what is left to the author."""
    title: str
    """The pattern that waits, in a few words."""
    change: str
    """The change in a few words, or the advice of the rule."""
    safety: Safety
    why: str
    """For unsafe ones what else changes, for manual ones why the author decides."""
    verified: bool
    how: str
    """How it was verified, or why it wasn't."""
    waits: int
    """How often the host waited here in the dry run."""
    applied: bool
    """Whether it is part of the patch."""
    changes: tuple[SourceEdit, ...] = ()
    """Its own changes of the file as it was; empty where they build on another fix's."""
    gain: FixGain | None = None

    shared: bool = False
    """Whether one wait stays in this place for several: of the reads that are stacked, say."""

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
