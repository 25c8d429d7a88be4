"""The dependency graph of a step in a form that replays fast: what host threads do, what they launch, where they wait.

Between two points where host and streams meet (a sync, an event), all that a thread launches on a stream can be told in
two numbers: how much work it adds to the stream, and how late it alone would make the stream end. So a step of 20,000
events becomes a few dozen nodes without loss (max-plus algebra; `replay` has the arithmetic). `build` makes the graph.
"""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from syncscan.model.arrays import Float64
from syncscan.model.rank import Record, StreamWait
from syncscan.model.trace import NONE
from syncscan.whatif.waits import Wait

BLOCK = 128
"""Launches in one node at most: the grain at which the launch queue's limit acts."""
LAUNCH_QUEUE = 1024
"""Launches that a stream holds before the host must wait (observed on CUDA, undocumented)."""
LEAD_IN = 16
"""Behind so many waits hardly anything is left of what was before them: of 8 recordings' replays 4 to 32 take the
fewest nodes, 16 are within a tenth of it in all but one."""


class Feed(msgspec.Struct, frozen=True):
    """What a run adds to one stream: device work in ns, and which row of the program's `late` table bounds its end."""

    stream: int
    work_ns: float
    row: int


class Run(msgspec.Struct, frozen=True):
    """A part of a thread's program without any wait: `host_ns` of its own work, and the launches in it."""

    thread: int
    host_ns: float
    launches: int = 0
    feeds: tuple[Feed, ...] = ()


class HostWait(msgspec.Struct, frozen=True):
    """A thread blocks until `streams` are done with all launched on them so far, or until `event` is reached.

    `host_ns` is the thread's own work since its node before; `wait` has what the sync point costs. `event` is the
    number of the event that it waits for, NONE where it waits for streams.
    """

    thread: int
    host_ns: float
    streams: tuple[int, ...]
    event: int
    wait: Wait


class Collective(msgspec.Struct, frozen=True):
    """A thread launches a collective, which a job's replay starts when the last of its ranks has come."""

    thread: int
    host_ns: float
    stream: int
    gap_ns: float
    latency_ns: float
    row: int
    """Of its kernel in the trace."""


Node: TypeAlias = "Run | HostWait | Record | StreamWait | Collective"


RUN, WAIT, RECORD, STREAM_WAIT, OTHER = range(5)
"""What a move begins with: whose fields follow, see `_move`."""
Move: TypeAlias = "tuple[Any, ...]"


def _move(node: Node) -> Move:
    if isinstance(node, Run):
        return RUN, node.thread, node.launches, tuple((f.stream, f.work_ns, f.row) for f in node.feeds)
    if isinstance(node, HostWait):
        wait, streams = node.wait, node.streams
        only = streams[0] if len(streams) == 1 and node.event == NONE else NONE  # what most wait for
        times = wait.call_ns, wait.wake_ns, wait.after_ns
        return WAIT, node.thread, only, streams, node.event, wait.finding, *times, wait
    if isinstance(node, Record):
        return RECORD, node.event, node.stream
    return (STREAM_WAIT, node.event, node.stream) if isinstance(node, StreamWait) else (OTHER,)


class Spared(NamedTuple):
    """What a program works less without the waits of a finding, in ns."""

    host: float
    """The step's thread."""
    whole: float
    """The same if the ops around the waits go too."""
    device: float


class Program(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One step: its nodes in the order of the host calls.

    `late_host` and `late_device` (float64 ns, same length) hold one launch each, grouped by feed; feed `row` starts at
    `late_first[row]`. A feed ends no earlier than max(scale * late_host + late_device) after its run's end on the host.
    """

    nodes: tuple[Node, ...]
    node_host: Float64
    """The `host_ns` of each node, 0 where it has none."""
    late_host: Float64
    late_device: Float64
    late_first: npt.NDArray[np.int64]
    length_ns: float
    """From its begin to the begin of the next step, as observed."""
    stream_ns: tuple[float, ...]
    """Work of each stream, idle time left out."""
    launches: int
    first: int = 0
    """The place of its first among the launches of all steps."""

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Its nodes as a replay reads them, which looks at each some thousand times: a tuple is taken apart at once."""
        return tuple(_move(node) for node in self.nodes)

    @cached_property
    def lead_in(self) -> int:
        """From which node on its last waits are, all of it where it has no more: see LEAD_IN."""
        waits = [at for at, node in enumerate(self.nodes) if isinstance(node, HostWait)]
        return waits[-LEAD_IN] if len(waits) > LEAD_IN else 0

    @cached_property
    def host_waits(self) -> tuple[HostWait, ...]:
        """Where its threads wait."""
        return tuple(node for node in self.nodes if isinstance(node, HostWait))

    @cached_property
    def waiting(self) -> frozenset[int]:
        """Numbers of the findings that wait in it, with NONE where something does that can't be removed."""
        return frozenset(node.wait.finding for node in self.host_waits)

    @cached_property
    def worked_ns(self) -> float:
        """How long the step's own thread works, the cost of the waiting calls with it."""
        return self.host_ns + sum(n.wait.call_ns + n.wait.after_ns for n in self.host_waits if n.thread == 0)

    @cached_property
    def spared(self) -> dict[int, Spared]:
        """By finding."""
        spared: dict[int, Spared] = {}
        for node in self.host_waits:
            wait, before = node.wait, spared.get(node.wait.finding, Spared(0.0, 0.0, 0.0))
            left, own = wait.call_ns + wait.after_ns - wait.left_ns, float(node.thread == 0)
            spared[wait.finding] = Spared(
                before.host + own * (left + wait.read_ns),
                before.whole + own * (left + max(wait.read_ns, wait.op_ns)),
                before.device + (wait.copy_ns if wait.copy != NONE else 0.0),
            )
        return spared

    @cached_property
    def works(self) -> Float64:
        """The device work of each feed by its row, ns."""
        feeds = [feed for node in self.nodes if isinstance(node, Run) for feed in node.feeds]
        return np.array([feed.work_ns for feed in sorted(feeds, key=attrgetter("row"))])

    @property
    def host_ns(self) -> float:
        """The step's own thread: its work without any wait, the cost of the waiting calls left out too."""
        return sum(n.host_ns for n in self.nodes if isinstance(n, Run | HostWait | Collective) and n.thread == 0)


class Graph(msgspec.Struct, frozen=True, eq=False):
    """The programs of the chosen steps in time order; threads and streams are numbered, the step's thread is 0."""

    programs: tuple[Program, ...]
    threads: int
    streams: tuple[tuple[int, int], ...]
    """(device, stream) of each stream number."""
    events: int
    busy_ns: float = 0.0
    """How long any stream works in a step, mean; time that streams share counts once."""

    added_from: int = NONE
    """From this stream number on, streams are the ones that a pipeline would add; NONE without."""

    @property
    def occupied_ns(self) -> float:
        """The work of the busiest stream a step, with the pauses that the device makes between queued work; mean."""
        total = [0.0] * len(self.streams)
        for program in self.programs:
            for node in program.nodes:
                for feed in node.feeds if isinstance(node, Run) else ():
                    total[feed.stream] += feed.work_ns
        return max(total, default=0.0) / max(1, len(self.programs))

    def work_of(self, *, moved: bool) -> float:
        """Device work a step on the streams that a pipeline adds, or on the others; mean ns."""
        chosen = slice(self.added_from, None) if moved else slice(0, self.added_from)
        return float(np.mean([sum(p.stream_ns[chosen]) for p in self.programs])) if self.programs else 0.0

    @property
    def host_ns(self) -> float:
        """The step's own thread: its own work a step, waits left out; mean."""
        return float(np.mean([p.host_ns for p in self.programs])) if self.programs else 0.0
