"""Count what couldn't be read of a trace, and report it in sentences."""

from __future__ import annotations

import msgspec

_SENTENCES = (
    ("dropped", "{n} unreadable and left out", "event"),
    ("partial", "{n} damaged: only the main fields were read", "event"),
    ("repaired", "{n} not valid JSON and repaired", "event"),
    ("foreign", "{n} not objects and left out", "entry|entries of traceEvents"),
    ("untimed", "{n} without a usable time and left out", "event"),
    ("endless", "{n} without a usable duration, taken as 0", "event"),
    ("duplicates", "{n} duplicated and counted once", "event"),
    ("ambiguous", "{n} shared by several calls, so work may be assigned to the wrong call", "correlation id"),
    ("deep", "{n} nested more than 256 deep; only the inner 256 levels count", "slice"),
    ("joined", "{n} merged with the first, since the key occurs again", "further list|further lists of events"),
    ("skipped", "{n} between events and left out", "byte"),
    ("behind", "{n} after the end of the trace and left out", "byte"),
    ("encoding", "{n} not UTF-8 and shown as \N{REPLACEMENT CHARACTER}", "character"),
)

UNFINISHED = "The trace ends in the middle of its events; the rest is missing (a crash, or a full disk)."
DAMAGED_TAIL = "The part after the events is damaged, so some metadata is missing."
DAMAGED_HEAD = "The head of the trace is damaged, so some metadata is missing."


class Damage(msgspec.Struct):
    dropped: int = 0
    """Events that couldn't be read at all."""
    partial: int = 0
    """Number of events whose main fields alone could be read."""
    repaired: int = 0
    """Events with broken JSON that a repair made whole."""
    foreign: int = 0
    """Entries of `traceEvents` that aren't objects."""
    untimed: int = 0
    """Events without a usable time."""
    endless: int = 0
    """Events without a usable duration."""
    duplicates: int = 0
    """Rows equal to another one in every column."""
    ambiguous: int = 0
    """Correlation ids of more than one runtime call."""
    deep: int = 0
    """Slices inside more than `DEEPEST` others."""
    joined: int = 0
    """Number of lists of events after the first."""
    skipped: int = 0
    """Bytes between events that belong to no event."""
    behind: int = 0
    """Bytes after the end of the trace."""
    encoding: int = 0
    """Places that aren't UTF-8."""
    first: int | None = None
    """Position of the first damage, in bytes of the uncompressed text."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Whole sentences, such as that a stream ends early or a head is damaged."""

    def at(self, offset: int) -> None:
        if self.first is None or offset < self.first:
            self.first = offset

    def add(self, other: Damage) -> None:
        for name, _, _ in _SENTENCES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first is not None:
            self.at(other.first)
        self.notes += other.notes

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence per kind of loss, the most serious first; empty if everything was read."""
        counted = [
            text.format(n=_count(n, noun)) + "." for name, text, noun in _SENTENCES if (n := getattr(self, name))
        ]
        if counted and self.first is not None:
            counted[0] = counted[0].removesuffix(".") + f" (the first damage is at byte {self.first:,})."
        return (*self.notes, *counted)


def _count(n: int, noun: str) -> str:
    singular, _, plural = noun.partition("|")
    if n == 1:
        return f"1 {singular} is"
    first, _, rest = (plural or singular + "s").partition(" ")
    return f"{n:,} {first} {rest} are".replace("  ", " ")
