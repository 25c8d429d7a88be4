"""Sync points and findings: what `detect` sees, what `attribute` and `cost` add, and what a report shows."""

from __future__ import annotations

import enum

import msgspec


class Cause(str, enum.Enum):
    """Why a host waits: the classes of the catalogue (docs/reference/rules.md)."""

    SHAPE = "SHAPE"
    READBACK = "READBACK"
    EXPLICIT = "EXPLICIT"
    PAGEABLE = "PAGEABLE"
    ALLOC = "ALLOC"
    CHECK = "CHECK"
    LOG = "LOG"
    CTRL = "CTRL"
    DIST = "DIST"
    INIT = "INIT"
    DEBUG = "DEBUG"
    UNKNOWN = "UNKNOWN"


class Severity(str, enum.Enum):
    """How much the step would gain, from nothing (`low`: it happened not to wait) up; `info` is intended waiting."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @classmethod
    def of_share(cls, share: float) -> Severity:
        """By the part of the step that would be gained: high from 5 %, medium from 1 %, else low."""
        if share >= 0.05:
            return cls.HIGH
        return cls.MEDIUM if share >= 0.01 else cls.LOW


class Confidence(str, enum.Enum):
    """How sure the attribution is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Phase(str, enum.Enum):
    """Which part of a training step a sync point lies in."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    DATA = "data"
    OTHER = "other"


class Use(str, enum.Enum):
    """What the host does with what it waited for: whether a fix may leave the host without it.

    STEERS: a branch, a shape or an index depends on it, and a fix has to keep that. SHOWN: it is only printed, logged
    or stored. NOTHING: no value is read; the host waits for a copy or for the end of work. UNKNOWN: neither the trace
    nor the source tells.
    """

    STEERS = "steers"
    SHOWN = "shown"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


class Removal(str, enum.Enum):
    """What a user's fix of a sync leaves behind (read by `whatif`).

    NOTHING: op, copy and synchronise disappear, as of a read-back. KERNELS: a data-dependent shape keeps its op and its
    kernels; the read of the size in it goes. ASYNC_COPY: the copy stays, without the wait. PINNED_COPY: a pageable copy
    becomes a pinned, asynchronous one.
    """

    NOTHING = "nothing"
    ASYNC_COPY = "async_copy"
    PINNED_COPY = "pinned_copy"
    KERNELS = "kernels"


class Diagnosis(msgspec.Struct, frozen=True):
    """What a rule says of a sync point: its cause and the words for it."""

    rule: str
    name: str
    cause: Cause
    title: str
    why: str
    fix: str
    when_fine: str
    confidence: Confidence = Confidence.HIGH
    intended: bool = False
    """True for waits that are meant or are not the program's own: they are reported with severity `info`."""
    removal: Removal = Removal.NOTHING
    use: Use = Use.UNKNOWN
    copied: Diagnosis | None = None
    """What it says where the line's source shows that the program itself copies what is indexed there."""
    once: bool = False
    """Whether the fix may be to read once in each step what is read several times: one wait is left then."""


Place = tuple[int, int]
"""A device's number and a stream's on it."""


class Awaited(msgspec.Struct, frozen=True):
    """What a sync point waited for: all work launched before a time on some streams. Times are ns on the trace's clock.

    Of an event it is the work before the event's record, on one stream; else all that had been launched when the last
    call began.
    """

    streams: tuple[Place, ...]
    before: int
    """When the record was made, or just behind the call's begin."""
    done: int | None
    """When the last of it ended; None where there was none."""
    of_event: bool = False
    copy_held: int = 0
    """Until when work of other streams kept the call's own copy from beginning; 0 where none did."""


class SyncPoint(msgspec.Struct, frozen=True):
    """One occurrence: one host thread, one blocking call (a copy and the synchronise behind it are one), one wait.

    `calls` are the rows of its runtime slices in time order, `ops` the rows of the ops around it, outermost first.
    Times are ns on the trace's clock.
    """

    calls: tuple[int, ...]
    api: str
    """Name of the runtime call that held the host the longest."""
    ops: tuple[int, ...]
    track: int
    ts: int
    end: int
    device: int
    stream: int
    """The stream it waits for, or NONE for all streams of the device."""
    diagnosis: Diagnosis
    awaited: Awaited | None = None
    """What its last call waited for; None where no device worked."""

    @property
    def released(self) -> int:
        """From when on nothing held its thread: when what it waited for was done, or else its begin, ns."""
        done = self.awaited.done if self.awaited else None
        return self.ts if done is None else min(max(self.ts, done), self.end)


class Source(msgspec.Struct, frozen=True):
    """A place in Python code. `exact` is false when `line` is the function's first line or a guess.

    `candidates` are the lines inside the function that can be it, where the source file was at hand.
    """

    file: str
    line: int
    function: str
    exact: bool
    candidates: tuple[int, ...] = ()


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a source file around the flagged ones, as the file is now. Their text may hold anything."""

    path: str
    """Where the file lies here; empty of one that was saved with the trace."""
    first: int
    """The number of the first line."""
    lines: tuple[str, ...]
    marked: tuple[int, ...]
    """The numbers of the flagged lines: the one, or those that it can be."""
    newer: bool
    """Whether the file was written after the trace was recorded, so that the lines may be others by now."""


class Attribution(msgspec.Struct, frozen=True):
    """Where a sync point belongs: everything a reader needs to find it in the program."""

    op: str
    op_stack: tuple[str, ...]
    scope: tuple[str, ...]
    module: tuple[str, ...]
    source: Source | None
    framework: Source | None
    """The framework's own line between the user's line and the call, where there is one."""
    owner: str
    """`user`, `framework` or `unknown`."""
    phase: Phase
    thread: str
    step: int | None
    confidence: Confidence = Confidence.HIGH
    path: str = ""
    """The file of `source` as seen from the program's root, the same wherever the program lies: part of an id."""
    in_loop: bool = False
    """Whether `source` only starts a framework's loop, `Trainer(…).train()`: then `framework` tells more, and leads."""
    use: Use = Use.UNKNOWN
    """What the host does with the value that it waited for, by the rule or by the source."""

    @property
    def in_library(self) -> Source | None:
        """`framework` where the sync is its own doing; None where it only passed on what the user called."""
        return self.framework if self.owner == "framework" else None


class Cost(msgspec.Struct, frozen=True):
    """Measured, for one sync point, in ns: how long the host was blocked, how long the device then stood idle."""

    wait_ns: int
    bubble_ns: int
    """From when what it waited for was done until the device's next work; each idle time counts for one sync point."""
    communication_ns: int = 0
    """The part of the wait in which the device was in exposed collectives: for other ranks or the network."""


class Gain(msgspec.Struct, frozen=True):
    """Predicted, for one finding, in µs a step: what removing it would give (see `Projection`)."""

    recoverable_us: float
    range_us: tuple[float, float]
    moved_us: float
    untold: str = ""
    """A sentence: why the trace of one rank can't tell it; empty where it can."""
    once_compiled_us: float | None = None
    """What it gives once the network is compiled with CUDA graphs and all other syncs are gone; None where that isn't
    projected."""


class Occurrence(msgspec.Struct, frozen=True):
    """One sync point with everything the stages found out about it."""

    sync: SyncPoint
    where: Attribution
    cost: Cost


class Finding(msgspec.Struct, frozen=True):
    """All sync points with the same rule, scope, op and source, the user's and the library's. Times: µs a step."""

    id: str
    diagnosis: Diagnosis
    where: Attribution
    severity: Severity
    confidence: Confidence
    api: str
    count: int
    per_step: float
    wait_us: float
    bubble_us: float
    occurrences: tuple[Occurrence, ...]
    gain: Gain | None = None
    excerpt: Excerpt | None = None
    """Its source lines, where the file is at hand."""

    @property
    def rule(self) -> str:
        """The id of the rule that named it."""
        return self.diagnosis.rule

    @property
    def scope(self) -> tuple[str, ...]:
        """Names of the `record_function` ranges around it, outermost first."""
        return self.where.scope
