"""Decode and check the table that capture stored in a trace.

The table is under the trace's top-level key "syncscan" (schema `syncscan.capture/1`). A file may hold anything, so
each part is decoded into frozen types on its own, and a part that doesn't match is left out with a sentence. Later code
doesn't check again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from syncscan.model.json_text import encodable
from syncscan.model.race import RaceKind
from syncscan.model.states import CompileRecord

Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""Nanoseconds since 1970; the upper bound leaves room to add two of them in an int64."""
Index = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]
"""Index into another list, -1 for none."""
Tid = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
LineNumber = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
"""Line of a file, or another small number."""
Handle = int | str
MOST_NODES = 100_000
"""Most nodes of a sampled tree; capture stores a fifth of that."""
MOST_STEPS = 1 << 20
"""Most steps of a run; capture stores an eighth of that."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """A Python frame: file as recorded, line, function."""

    file: str
    line: Annotated[int, msgspec.Meta(ge=-1, le=2**31)]
    function: str

    def __str__(self) -> str:
        """Return the frame as the profiler names it: `file.py(LINE): function`."""
        return f"{self.file}({self.line}): {self.function}"


class SyncRecord(msgspec.Struct, frozen=True, array_like=True):
    """A synchronization reported by torch's callbacks: when it began, on which native thread, and where.

    `kind` is "stream", "device" or "event"; `handle` is the address of the awaited object. `stack_tid` is the thread of
    the stack: it differs from `tid` only where the autograd engine synchronized and the training thread's stack is used
    instead.
    """

    epoch_ns: Epoch
    tid: Tid
    kind: str
    stack: Index
    module: Index = -1
    handle: Handle = 0
    stack_tid: Tid | None = None

    @property
    def borrowed(self) -> bool:
        """Return whether the stack belongs to another thread."""
        return self.stack_tid is not None and self.stack_tid != self.tid


class TimedCall(msgspec.Struct, frozen=True, array_like=True):
    """A call that waits without a callback (`empty_cache`, Thrust) and was timed by name."""

    begin_ns: Epoch
    end_ns: Epoch
    tid: Tid
    stack: Index


class EventCall(msgspec.Struct, frozen=True, array_like=True):
    """An event recorded on or awaited by a stream (`kind`: "record" or "wait"), as torch's callbacks reported it."""

    epoch_ns: Epoch
    tid: Tid
    kind: str
    event: Handle
    stream: Handle = 0


class Collection(msgspec.Struct, frozen=True, array_like=True):
    """A run of Python's garbage collector: when, on which native thread, and of which generation.

    Generation 0 is the youngest alone; 2 is everything.
    """

    begin_ns: Epoch
    end_ns: Epoch
    tid: Tid
    generation: LineNumber

    def __post_init__(self) -> None:
        if self.end_ns < self.begin_ns:
            raise ValueError("a collection ends before it begins")


class Lines(msgspec.Struct, frozen=True):
    """Stacks of synchronizations: numbered `frames` and `stacks` (innermost frame first), and records with them."""

    source: str = ""
    frames: tuple[Frame, ...] = ()
    stacks: tuple[tuple[Index, ...], ...] = ()
    modules: tuple[str, ...] = ()
    syncs: tuple[SyncRecord, ...] = ()
    calls: tuple[TimedCall, ...] = ()
    looped: tuple[Index, ...] | None = None
    """Frames within a network whose line is in a loop of their function; None in captures before 0.2."""

    def stack(self, number: int) -> tuple[Frame, ...]:
        """Return the frames of a stack, outermost first; empty for an unknown number."""
        if not 0 <= number < len(self.stacks):
            return ()
        return tuple(self.frames[i] for i in reversed(self.stacks[number]) if 0 <= i < len(self.frames))

    def module(self, number: int) -> tuple[str, ...]:
        """Return the path of a module, from the outermost class on; empty for an unknown number."""
        path = self.modules[number] if 0 <= number < len(self.modules) else ""
        return tuple(path.split("/")) if path else ()


class Clocks(msgspec.Struct, frozen=True):
    """NVML's readings of the device: power draw and limit in W; None where unknown."""

    power_w: Positive | None = None
    power_limit_w: Positive | None = None


class HostSample(msgspec.Struct, frozen=True, array_like=True):
    """A node of the sampled tree: a line of a function, reached through one call path.

    `parent` is the index of its caller in `HostSamples.nodes`, less than its own, -1 for none; `frame` indexes
    `HostSamples.frames`; `own` counts samples in this line and in non-Python code that it calls. Likewise, `stopped_ns`
    is how long the thread was off its core while others ran, `faults` counts pages that it touched first, and
    `touching_ns` is its time in system code while touching them.
    """

    parent: Index
    frame: Index
    line: LineNumber
    own: LineNumber
    stopped_ns: Count = 0
    faults: Count = 0
    touching_ns: Count = 0


class SampledThreadUse(msgspec.Struct, frozen=True):
    """Resources that the step's thread used while it was sampled."""

    wall_ns: Annotated[int, msgspec.Meta(gt=0, le=2**62)]
    off_ns: Count
    """Time off its core, for whatever reason."""
    faults: Count
    """Pages of memory that it touched first."""
    fault_ns: Positive | None = None
    """Cost of one page fault on that machine, including its release."""
    huge: Count | None = None
    """Huge pages that the system created meanwhile, for any process; None where unknown."""
    delayed_ns: Count | None = None
    """The part of the time off its core when it was ready to run."""


class SampledLine(msgspec.Struct, frozen=True, array_like=True):
    """A line in which another thread, or a phase of the run, was sampled: how often, or for how long in µs."""

    file: str
    function: str
    line: LineNumber
    amount: NotNegative


class SampledThread(msgspec.Struct, frozen=True):
    """Another thread of the process that ran Python while the step's thread was sampled."""

    name: str
    ran_ns: Count
    beside_ns: Count
    """The part of that while the step's thread was off its core."""
    places: tuple[SampledLine, ...] = ()
    """The program's innermost functions, most frequent first."""


class HostSamples(msgspec.Struct, frozen=True):
    """Samples of the step's thread, taken in steps without other instrumentation."""

    steps: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    step_us: Positive
    """Time of a sampled step, measured as for calibrated steps."""
    frames: Annotated[tuple[tuple[str, str], ...], msgspec.Meta(max_length=MOST_NODES)]
    """File and name, as in Python, of the functions in which samples were taken."""
    nodes: Annotated[tuple[HostSample, ...], msgspec.Meta(max_length=MOST_NODES)]
    rate: Positive | None = None
    """Requested samples per second."""
    used: SampledThreadUse | None = None
    """Resources used; None in captures before 0.2."""
    threads: Annotated[tuple[SampledThread, ...], msgspec.Meta(max_length=MOST_NODES)] = ()

    def __post_init__(self) -> None:
        """Reject nodes that don't form a tree: one before its caller, or of no frame; or all without a sample."""
        for number, node in enumerate(self.nodes):
            if not (-1 <= node.parent < number and 0 <= node.frame < len(self.frames)):
                raise ValueError(f"Node {number} is in no tree")
        if not self.samples:
            raise ValueError("No samples")

    @property
    def samples(self) -> int:
        return sum(node.own for node in self.nodes)


class CapturedPhase(msgspec.Struct, frozen=True):
    """A phase of the run between or within its steps: purpose, lines, and time in the watched window."""

    kind: str
    name: str
    file: str
    function: str
    first: LineNumber
    last: LineNumber
    us: NotNegative
    """Time of the phase, as part of `RunRecord.sampled_us`."""
    at: tuple[Count, ...] = ()
    """Steps in which it was seen."""


class RunLoop(msgspec.Struct, frozen=True):
    """The loop whose rounds are the program's steps, by its lines."""

    file: str
    function: str
    first: LineNumber
    last: LineNumber


class RunRecord(msgspec.Struct, frozen=True):
    """The run's steps from a capture's first to its last, and the phases between and within them."""

    steps: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    steps_us: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1, max_length=MOST_STEPS)]
    window: tuple[Count, Count]
    """First step and end (exclusive) of those that shares and the mean are based on."""
    disturbed: Annotated[tuple[tuple[Count, Count, str], ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    """Steps whose times aren't the program's own: the first, the end (exclusive), and why."""
    loop: RunLoop | None = None
    sampled_us: NotNegative = 0.0
    own_us: NotNegative = 0.0
    """Time in which the capture itself was at work in the steps that the mean is based on."""
    phases: Annotated[tuple[CapturedPhase, ...], msgspec.Meta(max_length=64)] = ()


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """An op that a dry run ran or skipped without knowing whether it waits, and where it first occurred."""

    what: str
    count: Index
    file: str
    line: Index


class Coverage(msgspec.Struct, frozen=True):
    """How much of a dry run was recognized."""

    ops: Index
    """Ops on the simulated device, including those of the gaps."""
    gaps: Annotated[tuple[Gap, ...], msgspec.Meta(max_length=MOST_NODES)] = ()

    @property
    def unknown(self) -> int:
        """Number of ops that weren't recognized."""
        return sum(gap.count for gap in self.gaps)


class RaceRecord(msgspec.Struct, frozen=True, array_like=True):
    """Two uses of one memory that nothing in a dry run ordered: their lines, and how often they came."""

    kind: RaceKind
    first: tuple[str, Index, str] | None
    """File, line and function of the earlier use; None where it wasn't noted."""
    second: tuple[str, Index, str]
    count: Index


class ProtectedUse(msgspec.Struct, frozen=True, array_like=True):
    """A wait of a dry run without which there would be a race: file, line and function of each."""

    wait: tuple[str, Index, str]
    kind: RaceKind
    first: tuple[str, Index, str] | None
    """The earlier use; None where it wasn't noted."""
    second: tuple[str, Index, str]


class CaptureTable(msgspec.Struct, frozen=True):
    """Everything that capture stored in its trace; defaults represent data it didn't store."""

    unprofiled_step_us: Positive | None = None
    """Step time without the profiler, µs: the median of the timed steps, or the mean where each end wasn't timed."""
    unprofiled_mean_us: Positive | None = None
    """Mean of those steps: unlike the median, it includes rare events."""
    unprofiled_steps_us: tuple[Positive, ...] = ()
    """Times of those steps; empty where single steps couldn't be distinguished."""
    notes: tuple[str, ...] = ()
    """Notes on the capture for readers of the numbers, one sentence each."""
    program: Annotated[tuple[str, ...], msgspec.Meta(max_length=1000)] = ()
    """The captured script and its arguments, without secrets; empty where they aren't known."""
    lines: Lines = Lines()
    events: tuple[EventCall, ...] = ()
    collections: tuple[Collection, ...] = ()
    """Garbage collections that took long enough to matter."""
    clocks: Mapping[str, Clocks] = {}
    """The device's clocks while the unprofiled steps ran, under `calibrated`."""
    unfinished_step: Index | None = None
    """Number of the step that the program's end cut short."""
    host: HostSamples | None = None
    """Samples of the host; None where it wasn't sampled."""
    run: RunRecord | None = None
    """The watched run; None in captures before 0.2."""
    unprofiled_period: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """Period in steps with which the timed steps repeat."""
    pretended: bool = False
    """Whether a dry run on a simulated device wrote it: nothing was timed."""
    coverage: Coverage | None = None
    """Coverage of a dry run; None for recordings."""
    compiled: CompileRecord | None = None
    """Breaks, skipped frames and recompiles as dynamo reported them; None if it wasn't asked."""
    values: tuple[tuple[Epoch, Annotated[str, msgspec.Meta(max_length=64)]], ...] = ()
    """When a dry run read a value back, and its mark, equal for equal values; empty for recordings."""
    races: Annotated[tuple[RaceRecord, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    """Races of a dry run; empty for recordings."""
    protected: Annotated[tuple[ProtectedUse, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    """Uses of memory that a wait protects in a dry run; empty for recordings."""


NO_TABLE = CaptureTable()
"""Table of a trace that syncscan didn't capture."""


def capture_table(value: Any) -> tuple[CaptureTable, tuple[str, ...]]:
    """Return the table from the value of a trace's key "syncscan", of any shape, and a sentence per rejected part."""
    if value is None:
        return NO_TABLE, ()
    if not isinstance(value, Mapping):
        return NO_TABLE, ("The capture table of this trace is damaged and was ignored: it is no object.",)
    read: dict[str, Any] = {}
    refused: list[str] = []
    parts = encodable(value)  # else lone surrogates in file names reach every report
    for field in msgspec.structs.fields(CaptureTable):
        if parts.get(field.name) is None:
            continue
        try:
            read[field.name] = msgspec.convert(parts[field.name], field.type)
        except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeError) as e:
            refused.append(f"The capture table's '{field.name}' is damaged and was ignored ({_reason(e)}).")
    return CaptureTable(**read), tuple(refused)


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "a text holds a lone surrogate"
    return str(error).rstrip(".")[:200] if isinstance(error, msgspec.ValidationError) else "a number is out of range"
