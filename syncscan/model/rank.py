"""What is kept of one rank's trace to join it with the others': its steps, findings, collectives, and its program.

It goes through files and between processes as JSON, a few ten kB a rank; whatever is read back is decoded into these
types, and what doesn't hold is refused. Times are ns on the trace's own clock (`base_ns` makes them epoch time),
figures of findings and steps µs a step.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

from syncscan.model.json_text import strict_value

VERSION = 1
"""Of a stored rank; another one is analysed anew."""

Time = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Number = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]


class RankFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A finding of one rank's trace, as far as the job tells it."""

    id: str
    rule: str
    cause: str
    title: str
    fix: str
    op: str
    scope: tuple[str, ...]
    file: str
    """Empty where no line is known, as `line` is 0."""
    line: int
    function: str
    phase: str
    intended: bool
    kernels_stay: bool
    """Whether only its wait is taken to go: what replaces it may compute more or less than it does."""
    per_step: float
    wait_us: float
    bubble_us: float
    alone_us: float | None
    """What removing it would gain if this rank were alone; None where nothing could be replayed."""


class RankStep(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One recorded step."""

    number: Number
    begin: Time
    end: Time


class RankCollective(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One collective of one step, as this rank took part in it.

    `worked`, `loaded`, `waited` and `bubbles` are what has gone by since the first step's begin when the rank arrives.
    """

    step: Number
    """Index into the rank's steps."""
    group: Number
    """Index into the rank's groups; NONE where the trace names none."""
    number: int
    """The collective's number in its group, NONE where the trace doesn't say it."""
    kind: str
    """`AllReduce`, as in the kernel's name."""
    stream: Number
    launched: Time
    begin: Time
    end: Time
    worked: int
    """How long the device worked, collectives left out."""
    loaded: int
    """How long the step's thread was in the DataLoader when it launched this."""
    waited: int
    """How long its threads had been held by syncs when this was launched."""
    beside: int
    """How long the device computed while the collective's kernel ran."""
    bubbles: tuple[tuple[Number, int], ...]
    """By finding (index): how long the device stood idle behind its sync points."""


class RunNode(msgspec.Struct, frozen=True, array_like=True, tag="run"):
    """Launches of one thread without a wait: its own work, and what they add to each stream.

    A feed is (stream, work, part of that beside a collective, corners): it ends no earlier than max(scale * host +
    stretch * device) over its corners behind the run's end on the host. They are the corners of the convex hull of all
    its launches: no other can be the latest.
    """

    thread: Number
    host_ns: float
    launches: Number
    feeds: tuple[tuple[Number, float, float, tuple[tuple[float, float], ...]], ...]


class WaitNode(msgspec.Struct, frozen=True, array_like=True, tag="wait"):
    """A thread waits for streams or an event; see `whatif.waits.Wait` for the parts."""

    thread: Number
    host_ns: float
    streams: tuple[Number, ...]
    event: Number
    finding: Number
    call_ns: float
    wake_ns: float
    after_ns: float
    left_ns: float
    read_ns: float
    op_ns: float
    copy: Number
    copy_ns: float


class Record(msgspec.Struct, frozen=True, array_like=True, tag="record"):
    """An event is reached when a stream is done with all launched on it so far."""

    event: Number
    stream: Number


class StreamWait(msgspec.Struct, frozen=True, array_like=True, tag="stream_wait"):
    """Later work on a stream starts only when an event is reached."""

    event: Number
    stream: Number


class CollectiveNode(msgspec.Struct, frozen=True, array_like=True, tag="collective"):
    """A thread launches a collective's kernel."""

    thread: Number
    host_ns: float
    stream: Number
    gap_ns: float
    """The device's own pause before it, behind queued work."""
    latency_ns: float
    """From the launch's return to its start on an idle stream."""
    collective: Number
    """Index into the rank's collectives."""


RankNode: TypeAlias = RunNode | WaitNode | Record | StreamWait | CollectiveNode


class RankProgram(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a rank's host threads do in one step, in the order of their calls."""

    step: Number
    """Index into the rank's steps."""
    busy_ns: float
    """How long any stream works in it, collectives left out."""
    beside_ns: float
    """How much of that lies beside a collective."""
    nodes: tuple[RankNode, ...]


class RankGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The programs of the steps that are replayed, and how many threads, streams and events they have."""

    programs: tuple[RankProgram, ...]
    threads: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
    streams: Annotated[int, msgspec.Meta(ge=0, le=1 << 16)]
    events: Annotated[int, msgspec.Meta(ge=0, le=1 << 24)]
    own_share: float
    """The part of the host's own time that isn't taken to be the profiler's."""
    slowdown: float
    """How many times as long its device takes for anything beside a collective."""
    slowdown_by_ns: float
    """How much work tells that."""


class RankAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One rank of a job: what its own trace says, and what joins it with the others'."""

    version: int = VERSION
    syncscan: str
    path: str
    size_bytes: int
    modified_ns: int
    """When the file was last written, 0 where that isn't known: with its size it tells whether this still holds."""
    rank: int | None
    """As the trace states it."""
    world_size: int | None
    base_ns: Time
    groups: tuple[str, ...]
    """The process groups, as `process_group.group_text` has them."""
    steps: tuple[RankStep, ...]
    numbered: bool
    """Whether the profiler numbered the steps; else they are counted as found."""
    observed_us: float
    unprofiled_us: float | None
    wait_us: float | None
    """None where the trace lacks what waits are measured by."""
    bubble_us: float | None
    busy_us: float
    communication_us: float
    input_us: float
    host_us: float
    recoverable_us: float | None
    bound: str
    reason: str
    findings: tuple[RankFinding, ...]
    collectives: tuple[RankCollective, ...]
    graph: RankGraph | None
    """None where nothing can be replayed."""
    warnings: tuple[str, ...] = ()


def encoded(rank: RankAnalysis) -> bytes:
    """As JSON."""
    try:
        return msgspec.json.encode(rank)
    except UnicodeEncodeError:  # the name of its file holds bytes that are no UTF-8
        return msgspec.json.encode(strict_value(msgspec.to_builtins(rank)))


def decoded(text: bytes) -> RankAnalysis:
    """The rank that this is.

    Raises:
        ValueError: it isn't one, or of another version.
    """
    rank = msgspec.json.decode(text, type=RankAnalysis)
    if rank.version != VERSION:
        raise ValueError(f"version {rank.version}")
    return rank
