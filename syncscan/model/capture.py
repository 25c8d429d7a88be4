"""From the JSON that capture stored in a trace to a typed, checked value; whatever doesn't hold is refused here.

The table stands under the trace's top-level key "syncscan" (schema `syncscan.capture/1`). It comes from a file, so that
it may hold anything: each part is decoded into frozen types by itself, and a part that isn't as capture writes it is
left out with a sentence. Behind this module nobody checks again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from syncscan.model.compiled import CompileRecord
from syncscan.model.json_text import encodable
from syncscan.model.race import RaceKind

Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""Nanoseconds since 1970; the upper bound leaves room to add two of them in an int64."""
Index = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]
"""A place in another list, -1 for none."""
Tid = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Handle = int | str
MOST_NODES = 100_000
"""Of a sampled tree; capture stores five times fewer."""
MOST_STEPS = 1 << 20
"""Of a run; capture stores eight times fewer."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One Python frame: file as recorded, line, function."""

    file: str
    line: Annotated[int, msgspec.Meta(ge=-1, le=2**31)]
    function: str

    def __str__(self) -> str:
        """As the profiler names a frame: `file.py(LINE): function`."""
        return f"{self.file}({self.line}): {self.function}"


class SyncRecord(msgspec.Struct, frozen=True, array_like=True):
    """One synchronise that torch called back for: when it began, on which native thread, and where.

    `kind` is "stream", "device" or "event"; `handle` the address of what was awaited. `stack_tid` is the thread whose
    stack it is: another one than `tid` only where the engine synchronised in backward and the training thread's stack
    stands in.
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
        """True where the stack is another thread's."""
        return self.stack_tid is not None and self.stack_tid != self.tid


class TimedCall(msgspec.Struct, frozen=True, array_like=True):
    """A call that waits unseen by the callbacks (`empty_cache`, Thrust) and was timed by name."""

    begin_ns: Epoch
    end_ns: Epoch
    tid: Tid
    stack: Index


class WarnedSync(msgspec.Struct, frozen=True, array_like=True):
    """A synchronise that torch's debug mode warned of, in the order of the warnings."""

    tid: Tid
    stack: Index


class EventCall(msgspec.Struct, frozen=True, array_like=True):
    """An event's record on a stream, or a stream's wait for it (`kind`: "record" or "wait"), as torch called back."""

    epoch_ns: Epoch
    tid: Tid
    kind: str
    event: Handle
    stream: Handle = 0


class Collection(msgspec.Struct, frozen=True, array_like=True):
    """A run of Python's garbage collector: when, on which native thread, and how many generations it went through.

    Generation 0 is the youngest alone; 2 is everything.
    """

    begin_ns: Epoch
    end_ns: Epoch
    tid: Tid
    generation: Annotated[int, msgspec.Meta(ge=0, le=2**31)]

    def __post_init__(self) -> None:
        """Refuse one that ends before it begins."""
        if self.end_ns < self.begin_ns:
            raise ValueError("a collection ends before it begins")


class Lines(msgspec.Struct, frozen=True):
    """The stacks of synchronises: `frames` and `stacks` (innermost frame first) are numbered, the rest names them."""

    source: str = ""
    frames: tuple[Frame, ...] = ()
    stacks: tuple[tuple[Index, ...], ...] = ()
    modules: tuple[str, ...] = ()
    syncs: tuple[SyncRecord, ...] = ()
    calls: tuple[TimedCall, ...] = ()
    warned: tuple[WarnedSync, ...] = ()

    def stack(self, number: int) -> tuple[Frame, ...]:
        """The frames of a stack, outermost first; empty for a number that has none."""
        if not 0 <= number < len(self.stacks):
            return ()
        return tuple(self.frames[i] for i in reversed(self.stacks[number]) if 0 <= i < len(self.frames))

    def module(self, number: int) -> tuple[str, ...]:
        """The path of a module from the outermost one's class on; empty for a number that has none."""
        path = self.modules[number] if 0 <= number < len(self.modules) else ""
        return tuple(path.split("/")) if path else ()


class Clocks(msgspec.Struct, frozen=True):
    """What NVML said of the device: its clock in MHz, the power it drew and may draw in W; None where it didn't."""

    sm_mhz: Positive | None = None
    power_w: Positive | None = None
    power_limit_w: Positive | None = None


class HostFrame(msgspec.Struct, frozen=True, array_like=True):
    """A function in which samples were taken: its file and name as Python has them."""

    file: str
    function: str


class HostSample(msgspec.Struct, frozen=True, array_like=True):
    """A node of the sampled tree: a line of a function, reached by one way.

    `parent` is its caller's place in `HostSamples.nodes`, before its own, -1 for none; `frame` the function's in
    `HostSamples.frames`; `own` counts the samples in this line itself and in what it calls that isn't Python. So
    do `stopped_ns`, how long the thread was off its core there while others ran, `faults`, pages that it touched first,
    and `touching_ns`, how long it was in the system's own code where it touched some.
    """

    parent: Index
    frame: Index
    line: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    own: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    stopped_ns: Count = 0
    faults: Count = 0
    touching_ns: Count = 0


class ThreadUse(msgspec.Struct, frozen=True):
    """What the step's thread used while it was sampled."""

    wall_ns: Annotated[int, msgspec.Meta(gt=0, le=2**62)]
    off_ns: Count
    """Off its core: waiting, for whatever that was."""
    faults: Count
    """Pages of memory that it touched first."""
    fault_ns: Positive | None = None
    """What one costs on that machine, with giving it back."""
    huge: Count | None = None
    """Huge pages that the system made meanwhile, for any process; None where it doesn't tell."""
    delayed_ns: Count | None = None
    """Of the time off its core: ready to run, but others were on it."""


class ThreadPlace(msgspec.Struct, frozen=True, array_like=True):
    """Where another thread was met while it ran, and how often."""

    file: str
    function: str
    line: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    count: Count


class OtherThread(msgspec.Struct, frozen=True):
    """Another thread of the process that ran Python, while the step's was sampled."""

    name: str
    ran_ns: Count
    beside_ns: Count
    """Of that, while the step's thread was off its core."""
    places: tuple[ThreadPlace, ...] = ()
    """The program's innermost functions, the most frequent first."""


class HostSamples(msgspec.Struct, frozen=True):
    """What the step's thread was in, sampled in steps with nothing else on."""

    steps: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    step_us: Positive
    """A sampled step's time, as a calibrated one's was taken."""
    frames: Annotated[tuple[HostFrame, ...], msgspec.Meta(max_length=MOST_NODES)]
    nodes: Annotated[tuple[HostSample, ...], msgspec.Meta(max_length=MOST_NODES)]
    rate: Positive | None = None
    """Samples a second that were asked for."""
    used: ThreadUse | None = None
    """None in captures before 0.2."""
    threads: Annotated[tuple[OtherThread, ...], msgspec.Meta(max_length=MOST_NODES)] = ()

    def __post_init__(self) -> None:
        """Refuse what is no tree.

        Raises:
            ValueError: a node before its caller, or of no frame; or none has a sample.
        """
        for number, node in enumerate(self.nodes):
            if not (-1 <= node.parent < number and 0 <= node.frame < len(self.frames)):
                raise ValueError(f"Node {number} is in no tree")
        if not self.samples:
            raise ValueError("No samples")

    @property
    def samples(self) -> int:
        """How many there are in all."""
        return sum(node.own for node in self.nodes)


class RunLine(msgspec.Struct, frozen=True, array_like=True):
    """A line that a phase of the run was met in, and for how long, in µs."""

    file: str
    function: str
    line: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    us: NotNegative


class RunPhase(msgspec.Struct, frozen=True):
    """A phase of the run between or within its steps: for what, by which lines, how long in the watched window."""

    kind: str
    name: str
    file: str
    function: str
    first: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    last: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    us: NotNegative
    """Of `RunRecord.sampled_us`."""
    at: tuple[Count, ...] = ()
    """The steps that it was met in."""
    lines: Annotated[tuple[RunLine, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    trace: str = ""
    """The name of the trace that holds a part of it; empty without one."""
    missing: str = ""
    """Why there is none, where one was wanted."""


class RecordedPhase(msgspec.Struct, frozen=True):
    """The phase of a program's run that a trace holds a part of, where it isn't the steps."""

    kind: str
    name: str
    file: str
    function: str
    first: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    last: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    once_us: NotNegative = 0.0
    """How long it takes when it comes, as sampled."""
    rounds: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How many rounds of its loop that is, each a step of this trace; None where the trace holds the whole phase."""
    of: str = ""
    """The name of the trace that holds the program's steps."""


class RunLoop(msgspec.Struct, frozen=True):
    """The loop that the program's steps are rounds of, by its lines."""

    file: str
    function: str
    first: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    last: Annotated[int, msgspec.Meta(ge=0, le=2**31)]


class RunSpan(msgspec.Struct, frozen=True, array_like=True):
    """A stretch of the run, µs from the first step's begin, in one phase: its place in the run's, -1 for the steps."""

    begin_us: NotNegative
    end_us: NotNegative
    phase: Index


class Disturbed(msgspec.Struct, frozen=True, array_like=True):
    """Steps whose times aren't the program's own: the first, the first behind them, and why."""

    first: Count
    end: Count
    why: str


class RunRecord(msgspec.Struct, frozen=True):
    """The run's steps from a capture's first to its last, and what lies between and within them."""

    steps: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    steps_us: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1, max_length=MOST_STEPS)]
    window: tuple[Count, Count]
    """The first step, and the first behind those, that shares and the mean are taken of."""
    disturbed: Annotated[tuple[Disturbed, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    recorded: Annotated[tuple[tuple[Count, Count], ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    period: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    loop: RunLoop | None = None
    sampled_us: NotNegative = 0.0
    phases: Annotated[tuple[RunPhase, ...], msgspec.Meta(max_length=64)] = ()
    spans: Annotated[tuple[RunSpan, ...], msgspec.Meta(max_length=MOST_NODES)] = ()

    def __post_init__(self) -> None:
        """Refuse what can't be a run.

        Raises:
            ValueError: a span of a phase that isn't there.
        """
        if any(span.phase >= len(self.phases) or span.end_us < span.begin_us for span in self.spans):
            raise ValueError("a stretch of no phase")


class Gap(msgspec.Struct, frozen=True, array_like=True):
    """What a dry run ran, or left out, without knowing whether it waits; and where it first did."""

    what: str
    count: Index
    file: str
    line: Index


class Coverage(msgspec.Struct, frozen=True):
    """How much of a dry run was understood."""

    ops: Index
    """On the pretended device, the gaps' own among them."""
    gaps: Annotated[tuple[Gap, ...], msgspec.Meta(max_length=MOST_NODES)] = ()

    @property
    def unknown(self) -> int:
        """How many of them weren't understood."""
        return sum(gap.count for gap in self.gaps)


class ReadValue(msgspec.Struct, frozen=True, array_like=True):
    """A value that a dry run read back, by when it was read: equal marks stand for equal values."""

    epoch_ns: Epoch
    value: Annotated[str, msgspec.Meta(max_length=64)]


class RaceRecord(msgspec.Struct, frozen=True, array_like=True):
    """Two uses of one memory that nothing in a dry run ordered: their lines, and how often they came."""

    kind: RaceKind
    first: tuple[str, Index, str] | None
    """File, line and function of the earlier use; None where it wasn't noted."""
    second: tuple[str, Index, str]
    count: Index


class CaptureTable(msgspec.Struct, frozen=True):
    """What capture stored in the trace that it wrote; the defaults stand for what it didn't store."""

    unprofiled_step_us: Positive | None = None
    """A step's time without the profiler, µs: the median of those timed, or their mean where no event saw each end."""
    unprofiled_mean_us: Positive | None = None
    """The mean of those steps: what comes in few of them is in it, and not in the median."""
    unprofiled_steps_us: tuple[Positive, ...] = ()
    """Each of those steps; empty where single ones couldn't be told apart."""
    notes: tuple[str, ...] = ()
    """What a reader of the numbers should know of the capture, a sentence each."""
    lines: Lines = Lines()
    events: tuple[EventCall, ...] = ()
    collections: tuple[Collection, ...] = ()
    """Those of the garbage collector that took long enough to matter."""
    calibrated_clocks: Clocks = Clocks()
    """While the unprofiled steps ran."""
    unfinished_step: int | None = None
    """The number of the step that the program's end cut short."""
    host: HostSamples | None = None
    """None where the host wasn't sampled."""
    run: RunRecord | None = None
    """None in captures before 0.2."""
    phase: RecordedPhase | None = None
    """None where the trace holds the program's steps."""
    unprofiled_period: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """After how many of the timed steps they repeat."""
    pretended: bool = False
    """Nothing was timed: a dry run wrote it, of a device that wasn't there."""
    coverage: Coverage | None = None
    """Of a dry run; None elsewhere."""
    compiled: CompileRecord | None = None
    """What dynamo said; None where it wasn't asked."""
    values: tuple[ReadValue, ...] = ()
    """What a dry run read back; empty elsewhere."""
    races: Annotated[tuple[RaceRecord, ...], msgspec.Meta(max_length=MOST_NODES)] = ()
    """Races of a dry run; empty elsewhere."""


NO_TABLE = CaptureTable()
"""Of a trace that syncscan didn't capture."""


def capture_table(value: Any) -> tuple[CaptureTable, tuple[str, ...]]:
    """The table of a trace, and a sentence for each part of it that was refused.

    Args:
        value: what stands under the trace's key "syncscan": JSON as Python's values, of any shape; None without.
    """
    if value is None:
        return NO_TABLE, ()
    if not isinstance(value, Mapping):
        return NO_TABLE, ("What capture stored in this trace is damaged and was left out: it is no object.",)
    reader = _Reader(encodable(value))  # a half of a character in a file's name would reach every report
    clocks = reader.part("clocks", dict[str, Any], {})
    table = CaptureTable(
        unprofiled_step_us=reader.part("unprofiled_step_us", Positive, None),
        unprofiled_mean_us=reader.part("unprofiled_mean_us", Positive, None),
        unprofiled_steps_us=reader.part("unprofiled_steps_us", tuple[Positive, ...], ()),
        notes=reader.part("notes", tuple[str, ...], ()),
        lines=reader.part("lines", Lines, Lines()),
        events=reader.part("events", tuple[EventCall, ...], ()),
        collections=reader.part("collections", tuple[Collection, ...], ()),
        calibrated_clocks=_Reader(clocks, reader.refused).part("calibrated", Clocks, Clocks()),
        unfinished_step=reader.part("unfinished_step", Index, None),
        host=reader.part("host", HostSamples, None),
        run=reader.part("run", RunRecord, None),
        phase=reader.part("phase", RecordedPhase, None),
        unprofiled_period=reader.part("unprofiled_period", Annotated[int, msgspec.Meta(ge=1, le=64)], 1),
        pretended=reader.part("pretended", bool, False),
        coverage=reader.part("coverage", Coverage, None),
        compiled=reader.part("compiled", CompileRecord, None),
        values=reader.part("values", tuple[ReadValue, ...], ()),
        races=reader.part("races", Annotated[tuple[RaceRecord, ...], msgspec.Meta(max_length=MOST_NODES)], ()),
    )
    return table, tuple(reader.refused)


class _Reader:
    """Decodes the parts of a table one by one; notes those that it refuses."""

    def __init__(self, table: Mapping[str, Any], refused: list[str] | None = None) -> None:
        self.table, self.refused = table, refused if refused is not None else []

    def part(self, key: str, kind: Any, otherwise: Any) -> Any:
        """A part as `kind`; `otherwise` where it isn't there, or isn't that."""
        value = self.table.get(key)
        if value is None:
            return otherwise
        try:
            return msgspec.convert(value, kind)
        except (msgspec.ValidationError, OverflowError, RecursionError, UnicodeError) as e:
            self.refused.append(f"What capture stored as '{key}' is damaged and was left out ({_reason(e)}).")
            return otherwise


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeError):
        return "a text holds half of a character"
    return str(error).rstrip(".")[:200] if isinstance(error, msgspec.ValidationError) else "a number is out of range"
