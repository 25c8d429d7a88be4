"""What couldn't be read of a trace, counted while reading and told in sentences at the end."""

from __future__ import annotations

import msgspec

_SENTENCES = (
    ("dropped", "{n} unreadable and left out", "event"),
    ("partial", "{n} damaged: only the main fields were read", "event"),
    ("repaired", "{n} not valid JSON and repaired", "event"),
    ("foreign", "{n} no objects and left out", "entry|entries of traceEvents"),
    ("untimed", "{n} without a usable time and left out", "event"),
    ("endless", "{n} without a usable duration, taken as 0", "event"),
    ("duplicates", "{n} twice in the trace and counted once", "event"),
    ("ambiguous", "{n} shared by several calls, so that work may be joined to the wrong one", "correlation id"),
    ("deep", "{n} nested in more than 256 others, of which the inner 256 count", "slice"),
    ("joined", "{n} joined with the first, as the key is there again", "further list|further lists of events"),
    ("skipped", "{n} between events part of none and left out", "byte"),
    ("behind", "{n} behind the end of the trace and left out: another document, or what is left of one", "byte"),
    ("encoding", "{n} not UTF-8 and shown as \N{REPLACEMENT CHARACTER}", "character"),
)

UNFINISHED = "The trace ends before its list of events does; what came after is missing (a crash, or a full disk)."
DAMAGED_TAIL = "What stands behind the events is damaged; some of what the trace says about itself is missing."
DAMAGED_HEAD = "The head of the trace is damaged; some of what it says about itself is missing."


class Damage(msgspec.Struct):
    """Counts of everything that was repaired or left out of one trace."""

    dropped: int = 0
    """Events that couldn't be read at all."""
    partial: int = 0
    """Events of which only the main fields could be read."""
    repaired: int = 0
    """Events whose JSON was broken and that are whole after a repair."""
    foreign: int = 0
    """Entries of `traceEvents` that aren't objects."""
    untimed: int = 0
    """Events without a usable time."""
    endless: int = 0
    """Events without a usable duration."""
    duplicates: int = 0
    """Rows that are equal to another in every column."""
    ambiguous: int = 0
    """Correlation ids that more than one runtime call has."""
    deep: int = 0
    """Slices with more than `DEEPEST` around them."""
    joined: int = 0
    """Lists of events behind the first."""
    skipped: int = 0
    """Bytes between events that belong to none."""
    behind: int = 0
    """Bytes behind the end of the trace."""
    encoding: int = 0
    """Places that aren't UTF-8."""
    first: int | None = None
    """Where the first broken place is, in bytes of the uncompressed text."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Whole sentences: a stream that ends early, a head that is damaged."""

    def at(self, offset: int) -> None:
        """Remember where something was broken, if nothing was before."""
        if self.first is None or offset < self.first:
            self.first = offset

    def add(self, other: Damage) -> None:
        """Count what was lost elsewhere too."""
        for name, _, _ in _SENTENCES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first is not None:
            self.at(other.first)
        self.notes += other.notes

    def sentences(self) -> tuple[str, ...]:
        """One sentence a kind of loss, the gravest first; empty if everything was read."""
        counted = [
            text.format(n=_count(n, noun)) + "." for name, text, noun in _SENTENCES if (n := getattr(self, name))
        ]
        if counted and self.first is not None:
            counted[0] = counted[0].removesuffix(".") + f" (the first damage is at byte {self.first:,})."
        return (*self.notes, *counted)


def _count(n: int, noun: str) -> str:
    one, _, many = noun.partition("|")
    if n == 1:
        return f"1 {one} is"
    first, _, rest = (many or one + "s").partition(" ")
    return f"{n:,} {first} {rest} are".replace("  ", " ")
