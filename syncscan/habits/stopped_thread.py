"""Estimate how long other threads blocked a step's thread by the interpreter's lock (GIL), from samples.

No clock tells that a thread wants the lock. But its holder runs, and a thread that waits for it doesn't. So time counts
while the step's thread was off its core although a core was free, and another Python thread ran, in code that doesn't
wait by itself. The part that chance explains is subtracted: a thread that needs no lock, as in a numpy call, runs just
as well while the step's thread is on its core.

In backward, the step's thread waits for autograd's, and samples don't tell whether that one computes or is blocked. In
recordings it is blocked: beside a thread of plain Python, an `aten::gelu_backward` takes 0.4 ms instead of 0.02 (H200,
torch 2.11). That time is likely, but not certainly, the lock's.
"""

from __future__ import annotations

import msgspec

from syncscan.habits.sampled_work import by_phase
from syncscan.model.finding import Phase
from syncscan.model.host import HostNode, SampledHost, ThreadUse
from syncscan.model.libraries import in_package

WAITS = "threading.py queue.py selectors.py socket.py ssl.py subprocess.py multiprocessing concurrent asyncio".split()
"""Files and packages of the standard library in which a thread waits of its own accord."""
_ENGINE = "_engine_run_backward"
"""torch's function in which the step's thread waits while autograd's thread runs backward."""
ON_ITS_CORE = 0.1
"""Least part of its time on its core without other threads running; else threads that don't need the lock can't be told
apart."""


class Stopped(msgspec.Struct, frozen=True):
    """How long others blocked the step's thread, in µs per step."""

    surely_us: float
    """In code that doesn't wait of its own accord, and beyond chance."""
    likely_us: float
    """Including the time blocked in backward."""
    most_us: float
    """All time off its core while a core was free, except its own waits in Python code."""
    by_phase: tuple[tuple[Phase, float], ...]
    """The likely time by phase, largest first."""


def stopped_by_others(sampled: SampledHost) -> Stopped | None:
    """Return how long others blocked the step's thread; None if capture didn't measure it or it is unknown."""
    used = sampled.used
    if used is None or used.delayed_us is None or not sampled.others:
        return None
    waiting = max(0.0, used.off_us - used.delayed_us)
    beyond = min(_beyond_chance(sampled, used), waiting)
    stopped, pairs = sum(used.stopped_us), list(zip(used.stopped_us, sampled.nodes, strict=True))
    share = beyond / stopped if stopped else 0.0
    working, backward = sum(us for us, n in pairs if not _waits(n)), sum(us for us, n in pairs if _in_backward(n))
    likely = share * (working + backward)
    itself = sum(node.self_us for node in sampled.nodes if _waits(node) and not _in_backward(node))
    return Stopped(
        surely_us=share * working,
        likely_us=likely,
        most_us=max(likely, max(waiting, sampled.step_us - used.on_us - used.delayed_us) - itself),
        by_phase=by_phase((n.phase, share * us) for us, n in pairs if not _waits(n) or _in_backward(n)),
    )


def _beyond_chance(sampled: SampledHost, used: ThreadUse) -> float:
    """Return the part of the time that others ran while the thread was off its core that is the lock's, in µs.

    They ran for G with the lock and for F without. F spreads over the thread's time on its core and its time off it for
    other reasons, in proportion. Both F and G follow from how long they ran while it was on its core.
    """
    beside = sum(used.stopped_us)
    on = max(0.0, sampled.step_us - used.off_us)
    meanwhile = max(0.0, sum(other.us for other in sampled.others) - beside)
    if on - meanwhile <= ON_ITS_CORE * on:
        return 0.0
    return min(beside, max(0.0, (beside * on - used.off_us * meanwhile) / (on - meanwhile)))


def _waits(node: HostNode) -> bool:
    """Return whether this function itself waits: for a lock, a file, a loader, autograd."""
    if node.phase is Phase.DATA or _in_backward(node):
        return True
    return node.owner == "python" and any(in_package(node.file, place) for place in WAITS)


def _in_backward(node: HostNode) -> bool:
    return node.phase is not Phase.DATA and node.function.rpartition(".")[2] == _ENGINE
