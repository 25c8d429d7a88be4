"""Sync points and findings: what `detect` sees, `attribute` and `cost` add, and a report shows."""

from __future__ import annotations

import enum

import msgspec

from syncscan.model.confidence import Confidence as Confidence
from syncscan.model.fix import Suggested


class Cause(str, enum.Enum):
    """Why a host waits: the classes of the catalog (docs/reference/rules.md)."""

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
    """How much the step would gain, from nothing (`low`) upward; `info` is an intended wait."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @classmethod
    def of_share(cls, share: float) -> Severity:
        """Return the severity for a gain as a fraction of the step: high from 5 %, medium from 1 %, else low."""
        if share >= 0.05:
            return cls.HIGH
        return cls.MEDIUM if share >= 0.01 else cls.LOW


class Phase(str, enum.Enum):
    """The part of a training step that contains a sync point."""

    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    DATA = "data"
    OTHER = "other"


class Use(str, enum.Enum):
    """Use of the awaited value by the host, which decides whether a fix may drop the value.

    STEERS: a branch, a shape or an index depends on it, and a fix has to keep that. SHOWN: it is only printed, logged
    or stored. NOTHING: no value is read; the host waits for a copy or for the end of work. UNKNOWN: neither the trace
    nor the source tells.
    """

    STEERS = "steers"
    SHOWN = "shown"
    NOTHING = "nothing"
    UNKNOWN = "unknown"


class Removal(str, enum.Enum):
    """Work that remains after a user fixes a sync (read by `whatif`).

    NOTHING: op, copy and synchronization disappear, as for a read-back. KERNELS: an op with a data-dependent shape
    keeps its kernels; its read of the size disappears. ASYNC_COPY: the copy stays, without the wait. PINNED_COPY: a
    pageable copy becomes a pinned, asynchronous one.
    """

    NOTHING = "nothing"
    ASYNC_COPY = "async_copy"
    PINNED_COPY = "pinned_copy"
    KERNELS = "kernels"


class Diagnosis(msgspec.Struct, frozen=True):
    """A rule's verdict on a sync point: its cause, and the texts on it."""

    rule: str
    name: str
    cause: Cause
    title: str
    why: str
    fix: str
    when_fine: str
    confidence: Confidence = Confidence.HIGH
    intended: bool = False
    """True for waits that are intended or not the program's own: they are reported with severity `info`."""
    removal: Removal = Removal.NOTHING
    use: Use = Use.UNKNOWN
    copied: Diagnosis | None = None
    """The diagnosis where the source line shows that the program itself copies what is indexed there."""
    do: str = ""
    """The fix in one imperative line."""
    per_statement: bool = False
    """Whether all that the rule finds in one statement of the program is one place, whatever waits in it."""
    once: bool = False
    """Whether the fix may be to read once per step what is read several times: one wait remains then."""


Place = tuple[int, int]
"""Number of a device, and of a stream on it."""


class Awaited(msgspec.Struct, frozen=True):
    """The work that a sync point waited for: launched on some streams before a time. Times are ns on the trace's clock.

    For an event, that is the work before the event's record, on one stream; otherwise all work launched before the last
    call began.
    """

    streams: tuple[Place, ...]
    before: int
    """When the event was recorded, or just after the call's begin."""
    done: int | None
    """When the last of the awaited work ended; None without any."""
    of_event: bool = False
    copy_held: int = 0
    """Time until which other streams' work kept the call's own copy from starting; 0 where none did."""


class SyncPoint(msgspec.Struct, frozen=True):
    """One occurrence of a sync: one host thread, one blocking call (including a copy's synchronization), one wait.

    `calls` are the rows of its runtime slices in time order, `ops` the rows of the ops around it, outermost first.
    Times are ns on the trace's clock.
    """

    calls: tuple[int, ...]
    api: str
    """Name of the runtime call that blocked the host the longest."""
    ops: tuple[int, ...]
    track: int
    ts: int
    end: int
    device: int
    stream: int
    """The awaited stream, or NONE for all streams of the device."""
    diagnosis: Diagnosis
    awaited: Awaited | None = None
    """The work that its last call waited for; None where no device was working."""

    @property
    def released(self) -> int:
        """Time from which nothing blocked the thread: when the awaited work was done, else the call's begin, ns."""
        done = self.awaited.done if self.awaited else None
        return self.ts if done is None else min(max(self.ts, done), self.end)


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in Python code. `exact` is false when `line` is the function's first line or inferred.

    `candidates` are the lines inside the function that can be it, where the source file was at hand.
    """

    file: str
    line: int
    function: str
    exact: bool
    candidates: tuple[int, ...] = ()


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a source file around the flagged ones, as the file is now; their text is untrusted."""

    path: str
    """The file's path on this machine; empty if it was saved with the trace."""
    first: int
    """Number of the first line."""
    lines: tuple[str, ...]
    marked: tuple[int, ...]
    """Numbers of the flagged lines: the exact one, or the candidates."""
    newer: bool
    """Whether the file is newer than the trace, so that its lines may have moved."""


class Attribution(msgspec.Struct, frozen=True):
    """Where a sync point belongs: everything that locates it in the program."""

    op: str
    op_stack: tuple[str, ...]
    scope: tuple[str, ...]
    module: tuple[str, ...]
    source: Source | None
    framework: Source | None
    """The framework's line between the user's line and the call, if any."""
    owner: str
    """`user`, `framework` or `unknown`."""
    phase: Phase
    thread: str
    step: int | None
    confidence: Confidence = Confidence.HIGH
    path: str = ""
    """The file of `source` relative to the program's root, independent of where the program lies: part of an id."""
    in_loop: bool = False
    """Whether `source` only starts a framework's loop, as `Trainer(…).train()`: then `framework` says more, and comes
    first."""
    use: Use = Use.UNKNOWN
    """Use of the awaited value by the host, according to the rule or the source."""

    @property
    def in_library(self) -> Source | None:
        """`framework` where the sync is its own doing; None where it only passed on the user's call."""
        return self.framework if self.owner == "framework" else None


class Cost(msgspec.Struct, frozen=True):
    """Measured cost of one sync point, ns: how long the host was blocked, how long the device was then idle."""

    wait_ns: int
    bubble_ns: int
    """Idle time from the end of the awaited work to the device's next work; each counts for one sync point."""
    communication_ns: int = 0
    """The part of the wait during exposed collectives: for other ranks or the network."""


class Gain(msgspec.Struct, frozen=True):
    """Projected gain of removing one finding, µs per step (see `Projection`)."""

    recoverable_us: float
    range_us: tuple[float, float]
    moved_us: float
    untold: str = ""
    """Why a single rank's trace can't tell the gain, as a sentence; empty where it can."""
    once_compiled_us: float | None = None
    """Gain once the network is compiled with CUDA graphs and all other syncs are gone; None if not projected."""


class Occurrence(msgspec.Struct, frozen=True):
    """One sync point with its attribution and cost."""

    sync: SyncPoint
    where: Attribution
    cost: Cost


class Finding(msgspec.Struct, frozen=True):
    """All sync points with the same rule, scope, op, and user and library source; times in µs per step."""

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
    """Its source lines, if the file is at hand."""
    suggested: Suggested | None = None
    """The change of `syncscan fix` for its line, if there is one."""

    @property
    def rule(self) -> str:
        """Id of its rule."""
        return self.diagnosis.rule

    @property
    def costliest(self) -> Occurrence:
        """The occurrence with the largest sum of wait and idle time; the first of equals."""
        return max(self.occurrences, key=lambda o: (o.cost.wait_ns + o.cost.bubble_ns, -o.sync.ts))

    @property
    def scope(self) -> tuple[str, ...]:
        """Names of the surrounding `record_function` ranges, outermost first."""
        return self.where.scope
