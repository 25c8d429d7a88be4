"""Say which race a guard saw: where the host uses memory, and the copy that may still run."""

from __future__ import annotations

from dataclasses import dataclass

from syncscan.facts.allow_comments import Comment
from syncscan.guarding.seen import Chain
from syncscan.model.race import TEXTS, RaceKind, RaceLine, RaceText

_DOES = {
    RaceKind.READ_BEFORE_COPY: "reads memory that a copy",
    RaceKind.WRITE_BEFORE_COPY: "writes to memory that a copy",
}


@dataclass(frozen=True, slots=True)
class GuardedRace:
    """A use of host memory, by the host, that nothing orders after a copy."""

    kind: RaceKind
    """`READ_BEFORE_COPY` or `WRITE_BEFORE_COPY`."""
    first: RaceLine
    """The line that copies."""
    file: str
    """File of the line that uses the memory; "" where there is none."""
    line: int
    function: str
    chain: Chain
    """File, line and function of each frame, outermost first."""
    thread: str
    """Name of the thread that used the memory."""
    step: int
    """Steps that had ended before."""
    scopes: tuple[str, ...] = ()
    """Open `record_function` scopes, outermost first."""
    allowed: str = ""
    """The reason why it is allowed; "" where it counts."""

    @property
    def place(self) -> str:
        """Return file and line, as tracebacks and editors write them."""
        return f"{self.file}:{self.line}" if self.file else "an unknown line"

    @property
    def text(self) -> RaceText:
        """Return the sentences that describe its kind, and how to mend it."""
        return TEXTS[self.kind]

    def __str__(self) -> str:
        """Return who uses which memory, in a few words."""
        where = f"{self.place} in {self.function}" if self.function else self.place
        return f"{where} {_DOES[self.kind]} in {self.first} may still use"


def allowed_by(comment: Comment | None, kind: RaceKind) -> str:
    """Return the reason of a comment that allows a race of this kind on its line; "" where it doesn't."""
    if comment is None or not comment.reason:
        return ""
    return comment.reason if not comment.rules or {"*", kind.value} & {*comment.rules} else ""
