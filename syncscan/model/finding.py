"""Sync points and findings: what `detect` sees, `attribute` and `cost` add, and a report shows."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from syncscan.model.fix import Suggested
from syncscan.model.json_text import Range, about
from syncscan.model.runtime_calls import copy_direction, is_synchronize

try:
    from _blake2 import blake2s  # as in hashlib, which also loads OpenSSL (2 to 12 ms)
except ImportError:
    from hashlib import blake2s


def short_id(what: object) -> str:
    """Return eight hexadecimal digits of a hash of a value's `repr`."""
    return blake2s(repr(what).encode(), digest_size=4).hexdigest()


class Confidence(str, enum.Enum):
    """How certain the attribution is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


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


class Replacement(str, enum.Enum):
    """Work that a rule's fix puts in the place of the op that waits (`replacement` in the header of a rule's page).

    UNKNOWN: the rule can't say, so that the fix gains what removing the wait does. NOTHING: the op goes, and so do ops
    that only lead up to it, as for a constant that is made once. OP: another op comes, with one launch.
    """

    UNKNOWN = "unknown"
    NOTHING = "nothing"
    OP = "op"


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's verdict on a sync point: what it states of the call, completed by the texts of its page."""

    rule: str = ""
    name: str = ""
    cause: Cause = Cause.UNKNOWN
    """Class of the catalog; a rule states it only if it spans two."""
    title: str = ""
    """A few words on what waits for what; a rule states them only where a table rather than its page says them."""
    why: str = ""
    fix: str = ""
    """Plain text on what to write instead; stated as the title is."""
    do: str = ""
    """The fix in one imperative line; stated as the title is."""
    when_fine: str = ""
    confidence: Confidence = Confidence.HIGH
    intended: bool = False
    """True for waits that are intended or not the program's own: they are reported with severity `info`."""
    removal: Removal = Removal.NOTHING
    """The part of the call that remains after the fix."""
    replacement: Replacement = Replacement.UNKNOWN
    """The work that the fix puts in the op's place; stated as the title is."""
    use: Use | None = None
    """Use of the value by the host; None where the cause's class says it."""
    variant: str = ""
    """Which of the page's titles and fixes it has, if there are several."""
    values: Mapping[str, str] = {}
    """Values of the fields in the page's title and fix, as of `{op} waits for a size`."""
    seen: str = ""
    """A sentence about this call, if the page's can't say everything; it follows why the call waits."""
    for_caller: bool = False
    """Whether `fix` is for the caller of a library; else, in a library's own code, it is for that code."""
    per_statement: bool = False
    """Whether all that the rule finds in one statement of the program is one place, whatever waits in it: torch waits
    in many lines there."""
    copied: Diagnosis | None = None
    """The diagnosis where the source line shows that the program itself copies what is indexed there."""


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


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in Python code. `exact` is false when `line` is the function's first line or inferred.

    `candidates` are the lines inside the function that can be it, where the source file was at hand.
    """

    file: str
    line: int
    function: str
    exact: bool
    candidates: tuple[int, ...] = ()


class Attribution(msgspec.Struct, frozen=True):
    """Where a sync point belongs: everything that locates it in the program."""

    op: str
    op_stack: tuple[str, ...]
    scope: tuple[str, ...]
    module: tuple[str, ...]
    source: Source | None
    called_from: Source | None
    """The library's line between the user's line and the call, if any."""
    owner: str
    """`user`, `framework` or `unknown`."""
    phase: Phase
    thread: str
    step: int | None
    confidence: Confidence = Confidence.HIGH
    path: str = ""
    """The file of `source` relative to the program's root, independent of where the program lies: part of an id."""
    in_loop: bool = False
    """Whether `source` only starts a framework's loop, as `Trainer(…).train()`: then `called_from` says more, and comes
    first."""
    value: Use = Use.UNKNOWN
    """Use of the awaited value by the host, according to the rule or the source."""

    @property
    def in_library(self) -> Source | None:
        """`called_from` where the sync is its own doing; None where it only passed on the user's call."""
        return self.called_from if self.owner == "framework" else None


NOWHERE = Attribution("", (), (), (), None, None, "unknown", Phase.OTHER, "", None)


class SyncPoint(msgspec.Struct, frozen=True):
    """One occurrence of a sync: one host thread, one blocking call (including a copy's synchronization), one wait.

    `detect` finds it and names it; `attribute` and `cost` add where it belongs and what it costs. Times are ns on the
    trace's clock.
    """

    calls: tuple[int, ...]
    """Rows of its runtime slices in time order."""
    api: str
    """Name of the runtime call that blocked the host the longest, without version suffix: `cudaStreamSynchronize`."""
    apis: tuple[str, ...]
    """Names of all `calls`; a single one for the queries of a loop."""
    ts: int
    """When the first of `calls` begins."""
    end: int
    """When the last of `calls` ends."""
    track: int
    """The host thread's track."""
    around: int
    """Row of the innermost host slice around it; NONE at the top."""
    device: int
    stream: int
    """The awaited stream, or NONE for all streams of the device."""
    waited: bool
    """Whether the host was measurably blocked by previously queued work."""
    awaited: Awaited | None
    """The work that its last call waited for; None where no device was working."""
    copy: str
    """Name of its device copy, such as `Memcpy DtoH (Device -> Pinned)`; empty without one."""
    bytes: int
    """Size of its copy; NONE without one."""
    launches: int = 0
    """Number of launches that waited for their own kernel; only for the one call that represents them all."""
    ops: tuple[int, ...] = ()
    """Rows of the ops around it, outermost first."""
    diagnosis: Diagnosis = Diagnosis()
    where: Attribution = NOWHERE
    wait_ns: int = 0
    """Measured: how long the host was blocked."""
    bubble_ns: int = 0
    """Measured: idle time from the end of the awaited work to the device's next work; each counts once."""
    communication_ns: int = 0
    """The part of the wait during exposed collectives: for other ranks or the network."""

    @property
    def direction(self) -> str:
        """Direction of its copy, `DtoH`, `HtoD`, `DtoD`, …; empty without one."""
        return copy_direction(self.copy)

    @property
    def pinned(self) -> bool:
        """Whether its copy touches pinned host memory; False for HIP traces, which don't state it."""
        return "Pinned" in self.copy

    @property
    def synchronizes(self) -> bool:
        """Whether it synchronizes a device, stream or event without a copy."""
        return not self.copy and any(is_synchronize(api) or api.endswith(" Sync") for api in self.apis)

    @property
    def released(self) -> int:
        """Time from which nothing blocked the thread: when the awaited work was done, else the call's begin, ns."""
        done = self.awaited.done if self.awaited else None
        return self.ts if done is None else min(max(self.ts, done), self.end)


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


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All sync points with one rule, scope, op and source, in one trace or on some ranks of a job; µs per step.

    JSON writes it as `without_evidence` has it: the fields with defaults are left out where they have these. A job's
    finding has the wait, idle time and count of the rank with the most, and the job's gain.
    """

    id: Annotated[str, about("stable across runs of the same code")]
    rule: Annotated[str, about("id of the rule")]
    name: Annotated[str, about("name of the rule")]
    cause: Cause
    severity: Severity
    confidence: Confidence
    op: Annotated[str, about("outermost op")]
    op_stack: Annotated[tuple[str, ...], about("outermost first")]
    call: Annotated[str, about("the runtime call that waits")]
    scope: Annotated[tuple[str, ...], about("outermost first, without step markers")]
    module: Annotated[tuple[str, ...], about("nn.Modules, outermost first")]
    source: Annotated[Source | None, about("line of user code")]
    called_from: Annotated[Source | None, about("library line inside it that waited")]
    in_loop: bool
    owner: Annotated[str, about("user, a framework, or unknown")]
    phase: Phase
    thread: str
    count: Annotated[int, about("sync points in the trace")]
    per_step: Annotated[float, about("sync points per step")]
    wait_us: Annotated[float | None, about("measured: how long the host was blocked")]
    bubble_us: Annotated[float | None, about("measured: how long the device was idle afterwards")]
    moved_us: Annotated[float | None, about("projected: wait that would move to the next sync")]
    recoverable_us: Annotated[float | None, about("projected: how much shorter the step would be")]
    recoverable_range_us: Range | None
    once_compiled_us: Annotated[
        float | None, about("projected: saving if the network is compiled and other syncs are removed")
    ]
    untold: Annotated[str, about("why the gain is uncertain or unknown; otherwise empty")]
    value: Annotated[Use, about("how the host uses the value; decides whether the sync is safe to remove")]
    replacement: Annotated[
        Replacement, about("what the fix puts in the place of the op; if unknown, the gain is that of the wait alone")
    ]
    title: str
    why: str
    fix: str
    when_fine: str
    ranks: Annotated[tuple[int, ...], about("of a job: the ranks that have it, ascending")] = ()
    alone_us: Annotated[float | None, about("of a job: the largest gain that a single rank's trace projects")] = None
    occurrences: tuple[SyncPoint, ...] = ()
    do: str = ""
    """The fix in one imperative line."""
    removal: Removal = Removal.NOTHING
    path: str = ""
    """The file of `source` relative to the program's root."""
    excerpt: Excerpt | None = None
    """Its source lines, if the file is at hand."""
    suggested: Suggested | None = None
    """The change of `syncscan fix` for its line, if there is one."""

    @property
    def intended(self) -> bool:
        """Whether the waits are intended or not the program's own."""
        return self.severity is Severity.INFO

    @property
    def in_library(self) -> Source | None:
        """`called_from` where the sync is the library's own doing; None where it only passed on the user's call."""
        return self.called_from if self.owner == "framework" else None

    @property
    def waited_us(self) -> float:
        """The wait; 0 where the trace can't tell it."""
        return self.wait_us or 0.0

    @property
    def idle_us(self) -> float:
        """How long the device was idle afterwards; 0 where the trace can't tell it."""
        return self.bubble_us or 0.0

    @property
    def costliest(self) -> SyncPoint:
        """The occurrence with the largest sum of wait and idle time; the first of equals."""
        return max(self.occurrences, key=lambda o: (o.wait_ns + o.bubble_ns, -o.ts))

    @property
    def without_evidence(self) -> Finding:
        """The finding as JSON has it."""
        return replace(self, **EVIDENCE)

    def gaining(self, us: float, range_us: tuple[float, float], step_us: float) -> Finding:
        """Return the finding with the gain of its fix, which decides its severity, in a step of this time."""
        severity = self.severity if self.intended else Severity.of_share(us / step_us if step_us else 0.0)
        return replace(self, recoverable_us=us, recoverable_range_us=range_us, severity=severity)


EVIDENCE: dict[str, Any] = {
    "occurrences": (),
    "do": "",
    "removal": Removal.NOTHING,
    "path": "",
    "excerpt": None,
    "suggested": None,
}
"""Fields of a finding that its JSON leaves out, with their defaults."""
