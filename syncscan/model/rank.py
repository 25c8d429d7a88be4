"""The summary of one rank's trace that joining it with other ranks' needs: steps, findings, collectives, program.

It passes through files and between processes as JSON, some ten kB per rank; decoding validates it. Times are ns on the
trace's own clock (`base_ns` converts them to epoch time), figures of findings and steps µs per step.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from syncscan.model.finding import Finding
from syncscan.model.json_text import strict_value
from syncscan.model.trace import NONE

Time = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
Number = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]


class RankStep(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A recorded step."""

    number: Number
    begin: Time
    end: Time


class RankCollective(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A collective of one step, as this rank took part in it.

    `worked`, `loaded`, `waited` and `bubbles` count from the first step's begin to the rank's arrival.
    """

    step: Number
    """Index into the rank's steps."""
    group: Number
    """Index into the rank's groups; NONE where the trace names none."""
    number: int
    """Number of the collective in its group, NONE where unknown."""
    kind: str
    """`AllReduce`, as in the kernel's name."""
    stream: Number
    launched: Time
    begin: Time
    end: Time
    worked: int
    """How long the device worked, without collectives."""
    loaded: int
    """How long the step's thread was in the DataLoader before this launch."""
    waited: int
    """How long syncs had blocked its threads before this launch."""
    beside: int
    """How long the device computed while the collective's kernel ran."""
    bubbles: tuple[tuple[Number, int], ...]
    """How long the device was idle after a finding's sync points, by the finding's index."""


class RunNode(msgspec.Struct, frozen=True, array_like=True, tag="run"):
    """Launches of one thread without a wait: its own work, and the work they add to each stream.

    A feed is (stream, work, part of it beside a collective, corners): it ends no earlier than max(scale * host +
    stretch * device) over its corners, after the run's end on the host. The corners are those of the convex hull of all
    its launches: no other launch can be the latest.
    """

    thread: Number
    host_ns: float
    launches: Number
    feeds: tuple[tuple[Number, float, float, tuple[tuple[float, float], ...]], ...]


Wait = TypeVar("Wait", bound="WaitNode")


class WaitNode(msgspec.Struct, frozen=True, array_like=True, tag="wait"):
    """A thread blocks until `streams` have done all work launched so far, or until an event is reached; times in ns."""

    thread: Number
    host_ns: float
    """The thread's own work since its previous node."""
    streams: tuple[Number, ...]
    """Numbers of the streams that it waits for, unless an event says it better."""
    event: Number
    """Number of the event, NONE if it waits for streams."""
    finding: Number
    """Number of its finding, NONE if it can't be removed."""
    call_ns: float
    """Cost of the call when there is nothing to wait for."""
    wake_ns: float
    """How long after the device the host continues."""
    after_ns: float
    """Time of the sync point's calls after the blocking one."""
    left_ns: float
    """Host time that remains after removing the call, since an asynchronous copy must still be launched."""
    read_ns: float = 0.0
    """Host time that goes with it besides the wait: a read-back's op, or the staging of a pageable copy."""
    op_ns: float = 0.0
    """Host time of the whole op around it and of what only leads up to it, for a replacement without the op."""
    copy: Number = NONE
    """Stream of its copy that becomes shorter or goes, or NONE."""
    copy_ns: float = 0.0
    """How much of that copy goes: the saving of pinning a pageable one, or all of a read-back's own."""
    fix: tuple[float, float, Number, float] | None = None
    """`read_ns`, `left_ns`, `copy` and `copy_ns` where its fix goes too, if the rule says what that is."""

    @property
    def fixed(self: Wait) -> Wait:
        """The wait whose removal takes along what its fix does."""
        if self.fix is None:
            return self
        read_ns, left_ns, copy, copy_ns = self.fix
        return replace(self, read_ns=read_ns, left_ns=left_ns, copy=copy, copy_ns=copy_ns)


class Record(msgspec.Struct, frozen=True, array_like=True, tag="record"):
    """An event is reached when a stream has finished all work launched on it so far."""

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
    """Latency from the launch's return to its start on an idle stream."""
    collective: Number
    """Index into the rank's collectives."""


RankNode: TypeAlias = RunNode | WaitNode | Record | StreamWait | CollectiveNode


class RankProgram(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The calls of a rank's host threads in one step, in order."""

    step: Number
    """Index into the rank's steps."""
    busy_ns: float
    """How long any stream works, without collectives."""
    beside_ns: float
    """The part of that beside a collective."""
    nodes: tuple[RankNode, ...]


class RankGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The programs of the replayed steps, and their numbers of threads, streams and events."""

    programs: tuple[RankProgram, ...]
    threads: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]
    streams: Annotated[int, msgspec.Meta(ge=0, le=1 << 16)]
    events: Annotated[int, msgspec.Meta(ge=0, le=1 << 24)]
    own_share: float
    """Fraction of the host's own time that isn't estimated profiler overhead."""
    slowdown: float
    """Slowdown of device time beside a collective, as a factor."""
    slowdown_by_ns: float
    """Amount of work that the slowdown was measured on."""

    def fixed(self) -> RankGraph:
        """Return the graph whose waits, once removed, take along what their fixes do."""
        programs = (
            replace(p, nodes=tuple(n.fixed if isinstance(n, WaitNode) else n for n in p.nodes)) for p in self.programs
        )
        return replace(self, programs=tuple(programs))


class RankAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """One rank of a job: the results of its own trace, and the data that joins it with others."""

    syncscan: str
    path: str
    size_bytes: int
    rank: int | None
    """The rank according to the trace."""
    world_size: int | None
    base_ns: Time
    groups: tuple[str, ...]
    """Process groups, encoded by `process_group.group_text`."""
    steps: tuple[RankStep, ...]
    numbered: bool
    """Whether the profiler numbered the steps; else they are counted."""
    observed_us: float
    unprofiled_us: float | None
    wait_us: float | None
    """Wait; None where the trace is missing the data to measure waits."""
    bubble_us: float | None
    busy_us: float
    communication_us: float
    input_us: float
    host_us: float
    recoverable_us: float | None
    bound: str
    reason: str
    findings: tuple[Finding, ...]
    collectives: tuple[RankCollective, ...] = ()
    graph: RankGraph | None = None
    """Replayable programs; None where nothing can be replayed."""
    warnings: tuple[str, ...] = ()


def encoded(rank: RankAnalysis) -> bytes:
    try:
        return msgspec.json.encode(rank)
    except UnicodeEncodeError:  # the file's name holds bytes that aren't UTF-8
        return msgspec.json.encode(strict_value(msgspec.to_builtins(rank)))


def decoded(text: bytes) -> RankAnalysis:
    """Return the rank in a text; a ValueError where it is none."""
    return msgspec.json.decode(text, type=RankAnalysis)
