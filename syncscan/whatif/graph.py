"""Define the dependency graph of a step in a form that replays fast: host work, launches and waits.

Between two points where host and streams synchronize (a sync, an event), everything that a thread launches on a stream
is described by two numbers: how much work it adds to the stream, and how late it alone would make the stream end. So a
step of 20,000 events becomes a few dozen nodes without loss (max-plus algebra; `replay` has the arithmetic).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from syncscan.model.arrays import Float64
from syncscan.model.rank import CollectiveNode, Record, StreamWait
from syncscan.model.trace import NONE
from syncscan.whatif.wait_effects import WaitEffect

BLOCK = 128
"""Most launches per node: the granularity of the launch queue's limit."""
LAUNCH_QUEUE = 1024
"""Launches that a stream holds before the host must wait (observed on CUDA, undocumented)."""
LEAD_IN = 16
"""Number of waits after which hardly anything remains of earlier ones: in the replays of 8 recordings, 4 to 32 take the
fewest nodes, and 16 is within a tenth of that in all but one."""


Feed: TypeAlias = tuple[int, float, int]
"""A stream, the work that a run adds to it, ns, and the row of the program's `late` table that bounds its end."""


class HostRun(msgspec.Struct, frozen=True):
    """A part of a thread's program without waits: `host_ns` of its own work, and the launches in it."""

    thread: int
    host_ns: float
    launches: int = 0
    feeds: tuple[Feed, ...] = ()


Node: TypeAlias = "HostRun | WaitEffect | Record | StreamWait | CollectiveNode"


RUN, WAIT, RECORD, STREAM_WAIT, OTHER = range(5)
"""Kinds of moves, the first field of each; see `_move`."""
Move: TypeAlias = "tuple[Any, ...]"


def _move(node: Node) -> Move:
    if isinstance(node, HostRun):
        return RUN, node.thread, node.launches, node.feeds
    if isinstance(node, WaitEffect):
        streams = node.streams
        only = streams[0] if len(streams) == 1 and node.event == NONE else NONE  # what most wait for
        return WAIT, node.thread, only, node.finding, node.call_ns, node.wake_ns, node.after_ns, node
    if isinstance(node, Record):
        return RECORD, node.event, node.stream
    return (STREAM_WAIT, node.event, node.stream) if isinstance(node, StreamWait) else (OTHER,)


class Spared(NamedTuple):
    """Work that a program saves without the waits of a finding, in ns."""

    host: float
    """On the step's thread."""
    whole: float
    """On the step's thread, if the ops around the waits go too."""
    device: float


class StepProgram(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One step: its nodes in the order of the host calls.

    `late_host` and `late_device` (float64 ns, same length) hold one launch each, grouped by feed; feed `row` starts at
    `late_first[row]`. A feed ends no earlier than max(scale * late_host + late_device) after its run's end on the host.
    """

    nodes: tuple[Node, ...]
    node_host: Float64
    """The `host_ns` of each node, 0 if it has none."""
    late_host: Float64
    late_device: Float64
    late_first: npt.NDArray[np.int64]
    length_ns: float
    """Time from its begin to the begin of the next step, as observed."""
    stream_ns: tuple[float, ...]
    """Work of each stream, without idle time."""
    launches: int
    first: int = 0
    """Index of its first launch among the launches of all steps."""

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Its nodes as tuples, which a replay unpacks some thousand times."""
        return tuple(_move(node) for node in self.nodes)

    @cached_property
    def lead_in(self) -> int:
        """Index of the node where its last `LEAD_IN` waits begin; 0 if it has no more."""
        waits = [at for at, node in enumerate(self.nodes) if isinstance(node, WaitEffect)]
        return waits[-LEAD_IN] if len(waits) > LEAD_IN else 0

    @cached_property
    def host_waits(self) -> tuple[WaitEffect, ...]:
        return tuple(node for node in self.nodes if isinstance(node, WaitEffect))

    @cached_property
    def waiting(self) -> frozenset[int]:
        """Numbers of the findings that wait in it; NONE for waits that can't be removed."""
        return frozenset(node.finding for node in self.host_waits)

    @cached_property
    def worked_ns(self) -> float:
        """How long the step's own thread works, including the cost of waiting calls."""
        return self.host_ns + sum(n.call_ns + n.after_ns for n in self.host_waits if n.thread == 0)

    @cached_property
    def spared(self) -> dict[int, Spared]:
        spared: dict[int, Spared] = {}
        for wait in self.host_waits:
            before = spared.get(wait.finding, Spared(0.0, 0.0, 0.0))
            left, main_thread = wait.call_ns + wait.after_ns - wait.left_ns, float(wait.thread == 0)
            spared[wait.finding] = Spared(
                before.host + main_thread * (left + wait.read_ns),
                before.whole + main_thread * (left + max(wait.read_ns, wait.op_ns)),
                before.device + (wait.copy_ns if wait.copy != NONE else 0.0),
            )
        return spared

    @property
    def host_ns(self) -> float:
        """Work of the step's own thread, without waits and without the cost of waiting calls."""
        return sum(
            n.host_ns for n in self.nodes if isinstance(n, HostRun | WaitEffect | CollectiveNode) and n.thread == 0
        )


class Graph(msgspec.Struct, frozen=True, eq=False):
    """The programs of the chosen steps in time order; threads and streams are numbered, the step's thread is 0."""

    programs: tuple[StepProgram, ...]
    threads: int
    streams: tuple[tuple[int, int], ...]
    """(device, stream) of each stream number."""
    events: int
    busy_ns: float = 0.0
    """Mean time per step in which any stream works; overlap counts once."""

    def fixed(self) -> Graph:
        """Return the graph whose waits, once removed, take along what their fixes do."""
        programs = (
            replace(p, nodes=tuple(n.fixed if isinstance(n, WaitEffect) else n for n in p.nodes)) for p in self.programs
        )
        return replace(self, programs=tuple(programs))

    @property
    def occupied_ns(self) -> float:
        """Mean work of the busiest stream per step, with the device's pauses between queued work."""
        total = [0.0] * len(self.streams)
        for program in self.programs:
            for node in program.nodes:
                for stream, work_ns, _ in node.feeds if isinstance(node, HostRun) else ():
                    total[stream] += work_ns
        return max(total, default=0.0) / max(1, len(self.programs))

    @property
    def host_ns(self) -> float:
        return float(np.mean([p.host_ns for p in self.programs])) if self.programs else 0.0
