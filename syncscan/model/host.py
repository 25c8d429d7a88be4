"""Where a step's host time goes: sampled on its thread without the profiler, and counted in the trace."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import msgspec

from syncscan.model.finding import Phase

USER = "user"
"""Owner of the program's own code; any other owner is a top-level package, such as `torch`."""


class HostNode(msgspec.Struct, frozen=True, kw_only=True):
    """A call site of the sampled tree: a line of a function, reached through one call path."""

    parent: int
    """Index of its caller in `SampledHost.nodes`, less than its own; -1 for a root."""
    function: str
    file: str
    """File as Python named it."""
    line: int
    """Line of the function that ran or called."""
    owner: str
    """`USER`, or the function's package."""
    phase: Phase
    us: float
    """Time with all callees, µs per step."""
    self_us: float
    """Time in this function and in non-Python code that it calls, µs per step."""

    @property
    def place(self) -> str:
        """The line, as `train.py:12`."""
        return f"{PurePath(self.file.replace(chr(92), '/')).name}:{self.line}"


class OtherThread(msgspec.Struct, frozen=True, kw_only=True):
    """Another Python thread of the process, while the step's thread was sampled."""

    name: str
    us: float
    """How long it ran, µs per step."""
    beside_us: float
    """The part of that while the step's thread was off its core."""
    places: tuple[str, ...]
    """Where it was sampled, most frequent first: `file.py:LINE function`."""


class ThreadUse(msgspec.Struct, frozen=True, kw_only=True):
    """Resources that the step's thread used while it was sampled, µs per step."""

    off_us: float
    """Time off its core."""
    on_us: float
    """Time on its core in the sampled steps, not rescaled: from step to step, a thread computes equally long, but waits
    differently long."""
    delayed_us: float | None
    """The part of the time off its core when it was ready to run; None where unknown."""
    faults: float
    """Pages of memory that it touched first."""
    fault_us: float | None
    """Cost of one page fault, including its release; None where none is counted."""
    stopped_us: tuple[float, ...]
    """Time off its core in this function while other Python threads ran, by index in `SampledHost.nodes`."""
    faults_in: tuple[float, ...]
    """Pages touched first in this function, by the same index."""
    touching_us: tuple[float, ...]
    """Time in system code while touching pages first, by the same index; all 0 where unknown."""
    huge: float
    """Huge pages that the system created per step, for any process; 0 where unknown."""


class HostShare(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one phase, owner or function per step."""

    name: str
    us: float
    share: float
    """Fraction of the step, 0 to 1."""


class SampledHost(msgspec.Struct, frozen=True, kw_only=True):
    """Tree of functions that the step's thread was in, sampled externally while nothing else was recorded."""

    step_us: float
    """Undisturbed step time that the tree's times add up to, µs."""
    steps: int
    """Number of sampled steps."""
    samples: int
    overhead: float | None
    """Relative slowdown of sampled steps; None where unknown."""
    nodes: tuple[HostNode, ...]
    """Callers before callees; callees of one caller by longest time."""
    used: ThreadUse | None = None
    """Resources used; None where capture didn't collect them."""
    others: tuple[OtherThread, ...] = ()
    """Other threads, busiest first."""

    def in_program(self, node: HostNode) -> HostNode | None:
        """Return the nearest of the program's own lines at or above this node; None where it has none."""
        while node.owner != USER:
            if node.parent < 0:
                return None
            node = self.nodes[node.parent]
        return node

    def by_phase(self) -> tuple[HostShare, ...]:
        """Return the self time of each phase, longest first; they add up to the step."""
        return self._shares((node.phase.value, node.self_us) for node in self.nodes)

    def by_owner(self) -> tuple[HostShare, ...]:
        """Return the self time of each owner's functions, longest first; they add up to the step."""
        return self._shares((node.owner, node.self_us) for node in self.nodes)

    def _shares(self, parts: Iterable[tuple[str, float]]) -> tuple[HostShare, ...]:
        total: dict[str, float] = {}
        for name, us in parts:
            total[name] = total.get(name, 0.0) + us
        shares = (HostShare(name=name, us=us, share=us / self.step_us) for name, us in total.items() if us > 0)
        return tuple(sorted(shares, key=lambda share: (-share.us, share.name)))


class DearOp(msgspec.Struct, frozen=True, kw_only=True):
    """Ops of one name in one scope, or calls of the OS, and their cost to the host."""

    op: str
    scope: tuple[str, ...]
    """Scopes, outermost first, without the step; for a backward op, those open on the steps' thread meanwhile,
    or else those of its forward op."""
    per_step: float
    us: float
    """Host time per step with all callees, without waits, scaled like `CountedHost`, µs."""
    self_us: float
    """Host time without nested ops and runtime calls, µs."""


class CountedHost(msgspec.Struct, frozen=True, kw_only=True):
    """Host time in the trace, of the steps' threads and of autograd threads that they wait for.

    Times are µs per step, from the begin of one step to that of the next. Each moment counts once, so that they add up:
    in the loader, else on an active autograd thread, else on the steps' thread.
    """

    step_us: float
    """Their sum: the undisturbed step where they are scaled, else the recorded one."""
    dispatch_us: float
    """In ops, without nested runtime calls: dispatch, and computation on the host, including Python."""
    launches_us: float
    """In calls that launch device work: kernels, graphs, copies, memsets."""
    allocations_us: float
    """In calls that allocate or free device or pinned memory."""
    queries_us: float
    """In calls that only query an event, a stream, a capture or a device."""
    other_calls_us: float
    """In other runtime calls, including the part of waiting calls that isn't waiting."""
    os_calls_us: float = 0.0
    """In calls of the OS, such as `poll` and `read`, in no other call: waiting for input, locks and files."""
    waits_us: float
    """Blocked on the device: in calls that wait for it, and where the launch queue is full."""
    input_us: float
    """In a DataLoader's `__next__`, with all that it does."""
    python_us: float
    """Between ops and calls on the step's thread, while no autograd thread is active."""
    ops_per_step: float
    """All ops, including nested ones."""
    launches_per_step: float
    kernels_per_launch: float
    """Kernels, copies and memsets. More than one where graphs are replayed; 0 without launches."""
    scaled: bool
    """Whether profiler overhead was removed from the times; else they are as recorded, and too long."""
    dearest: tuple[DearOp, ...]
    """Ops and calls of the OS with the most self time, longest first."""


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """All results on the host's time."""

    sampled: SampledHost | None = None
    """None where capture didn't sample."""
    counted: CountedHost | None = None
    """None if the trace has no step markers, no host slices in them, no device work, or no waits of the calls."""


UNKNOWN_HOST = Host()
"""For a trace that shows nothing of its host."""
