"""Where a step's host time goes: as sampled on its thread without the profiler, and as counted in the trace."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from syncscan.model.finding import Phase

USER = "user"
"""The owner of the program's own code; any other owner is the top-level package's name, such as `torch`."""


class HostNode(msgspec.Struct, frozen=True, kw_only=True):
    """One call site of the sampled tree: a line of a function, reached by one way."""

    parent: int
    """Its caller's place in `SampledHost.nodes`, before its own; -1 for a root."""
    function: str
    file: str
    """As Python named it."""
    line: int
    """The line of the function that ran, or that called on."""
    owner: str
    """`USER`, or the package whose function it is."""
    phase: Phase
    us: float
    """Of a step's time, with all that it called, in µs."""
    self_us: float
    """Of a step's time, in this function itself and in what it calls that isn't Python, in µs."""


class OtherThread(msgspec.Struct, frozen=True, kw_only=True):
    """Another thread of Python's in the process, as it was while the step's thread was sampled."""

    name: str
    us: float
    """How long it ran, in µs a step."""
    beside_us: float
    """Of that, while the step's thread was off its core."""
    places: tuple[str, ...]
    """Where it was met, the most frequent first: `file.py:LINE function`."""


class ThreadUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the step's thread used while it was sampled, in µs a step."""

    off_us: float
    """Off its core."""
    on_us: float
    """On its core, in the sampled steps as they were: on another scale than the rest where those took another time.
    What a thread computes stays the same from step to step, how long it waits doesn't."""
    delayed_us: float | None
    """Of that, ready to run without a core to run on; None where the system doesn't tell."""
    faults: float
    """Pages of memory that it touched first."""
    fault_us: float | None
    """What one costs, with giving it back; None where none is counted."""
    stopped_us: tuple[float, ...]
    """By place in `SampledHost.nodes`: off its core in this function itself, while other threads of Python's ran."""
    faults_in: tuple[float, ...]
    """By the same place: how many of the pages were touched in this function itself."""
    touching_us: tuple[float, ...]
    """By the same place: in the system's own code where pages were touched first; all 0 where it doesn't tell."""
    huge: float
    """Huge pages that the system made a step meanwhile, for any process; 0 where it doesn't tell."""


class HostShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one phase, owner or function takes of a step."""

    name: str
    us: float
    share: float
    """Of the step, 0 to 1."""


class SampledHost(msgspec.Struct, frozen=True, kw_only=True):
    """The tree of functions that the step's thread was in, sampled from outside while nothing else was recorded."""

    step_us: float
    """The undisturbed step that the tree's times add up to, in µs."""
    steps: int
    """Sampled steps."""
    samples: int
    overhead: float | None
    """By which part sampled steps were longer than those without; None where that isn't known."""
    nodes: tuple[HostNode, ...]
    """Callers before what they call; of one caller's calls the longest first."""
    used: ThreadUse | None = None
    """None where capture didn't ask."""
    others: tuple[OtherThread, ...] = ()
    """The busiest first."""

    def by_phase(self) -> tuple[HostShare, ...]:
        """What each phase takes itself, the longest first; they add up to the step."""
        return self._shares((node.phase.value, node.self_us) for node in self.nodes)

    def by_owner(self) -> tuple[HostShare, ...]:
        """What each owner's own functions take, the longest first; they add up to the step."""
        return self._shares((node.owner, node.self_us) for node in self.nodes)

    def _shares(self, parts: Iterable[tuple[str, float]]) -> tuple[HostShare, ...]:
        total: dict[str, float] = {}
        for name, us in parts:
            total[name] = total.get(name, 0.0) + us
        shares = (HostShare(name=name, us=us, share=us / self.step_us) for name, us in total.items() if us > 0)
        return tuple(sorted(shares, key=lambda share: (-share.us, share.name)))


class DearOp(msgspec.Struct, frozen=True, kw_only=True):
    """Ops of one name in one scope, and what they cost the host."""

    op: str
    scope: tuple[str, ...]
    """Outermost first, without the step; of a backward op its forward op's."""
    per_step: float
    us: float
    """Host time of a step with all that they call, waits left out; scaled as `CountedHost` is, in µs."""
    self_us: float
    """The same without the ops and runtime calls below them."""


class CountedHost(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace shows the steps' threads do: the thread that runs them, and autograd's, for which that one waits.

    Times are µs a step, from one step's begin to the next one's. Each moment counts once, so that they add up: in the
    loader, else on an autograd thread that is in anything, else on the steps' thread.
    """

    dispatch_us: float
    """In ops, without the runtime calls in them: dispatch, and what they compute on the host, in Python too."""
    launches_us: float
    """In calls that give the device work: kernels, graphs, copies, memsets."""
    allocations_us: float
    """In calls that take memory or give it back, of the device or pinned."""
    queries_us: float
    """In calls that only ask: about an event, a stream, a capture, a device."""
    other_calls_us: float
    """In runtime calls that are none of these, what of calls that wait isn't waiting too."""
    waits_us: float
    """Held by the device: in calls that wait for it, and where the launch queue is full."""
    input_us: float
    """In a DataLoader's `__next__`, with all that it does."""
    python_us: float
    """Between ops and calls, on the thread that runs the step; while no autograd thread is in any."""
    ops_per_step: float
    """All ops, those inside others too."""
    launches_per_step: float
    kernels_per_launch: float
    """Kernels, copies and memsets. More than one where graphs are replayed; 0 without launches."""
    scaled: bool
    """Whether the profiler's share was taken out of the times; else they are as recorded, and too long."""
    dearest: tuple[DearOp, ...]
    """The ops that take most themselves, the longest first."""

    @property
    def step_us(self) -> float:
        """The step that the times add up to: the undisturbed one where they are scaled, else the recorded one."""
        calls = self.launches_us + self.allocations_us + self.queries_us + self.other_calls_us
        return self.dispatch_us + calls + self.waits_us + self.input_us + self.python_us


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of where the host's time goes."""

    sampled: SampledHost | None = None
    """None where capture didn't sample."""
    counted: CountedHost | None = None
    """None where the trace marks no steps, holds nothing of their host or no device work, or doesn't tell how long
    its calls waited."""


UNKNOWN_HOST = Host()
"""Of a trace that shows nothing of its host."""
