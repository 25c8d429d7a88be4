"""From what a step's thread used while it was sampled to how long others stopped it by the interpreter's lock.

No clock tells that a thread wanted the lock. But who holds it runs, and who waits for it doesn't: what counts is time
in which the step's thread was off its core, not for want of one, while another thread of Python's ran, in code that
doesn't wait by itself. Of that the part goes that chance explains: a thread that needs no lock, as in a call of
numpy's, runs while the step's is on its core just as well.

In the backward pass the step's thread waits for autograd's, and whether that one computes or is stopped too, samples
don't tell. In recordings it is stopped: beside a thread of plain Python an `aten::gelu_backward` takes 0.4 ms instead
of 0.02 (H200, torch 2.11). That time is likely the lock's, and not surely.
"""

from __future__ import annotations

import msgspec

from syncscan.model.finding import Phase
from syncscan.model.host import HostNode, SampledHost, ThreadUse
from syncscan.model.libraries import in_package

WAITS = "threading.py queue.py selectors.py socket.py ssl.py subprocess.py multiprocessing concurrent asyncio".split()
"""Files and packages of the standard library in which a thread waits for something, by itself."""
_ENGINE = "_engine_run_backward"
"""The function of torch's in which the step's thread waits until autograd's has run the backward pass."""
ON_ITS_CORE = 0.1
"""Of its time on the core the others must leave this part alone at least, or nothing tells them from those that need
no lock."""


class Stopped(msgspec.Struct, frozen=True):
    """How long the step's thread was stopped by others, in µs a step."""

    surely_us: float
    """In code that doesn't wait by itself, and more than chance explains."""
    likely_us: float
    """With what it was stopped in the backward pass."""
    most_us: float
    """All that it was off its core and might have been on one, but for what it waits for by itself in Python's code."""


def stopped_by_others(sampled: SampledHost) -> Stopped | None:
    """How long others stopped the step's thread; None where capture didn't ask, or nothing can be said."""
    used = sampled.used
    if used is None or used.delayed_us is None or not sampled.others:
        return None
    waiting = max(0.0, used.off_us - used.delayed_us)
    beyond = min(_beyond_chance(sampled, used), waiting)
    stopped, pairs = sum(used.stopped_us), list(zip(used.stopped_us, sampled.nodes, strict=True))
    own, backward = sum(us for us, n in pairs if not _waits(n)), sum(us for us, n in pairs if _in_backward(n))
    likely = beyond * (own + backward) / stopped if stopped else 0.0
    itself = sum(node.self_us for node in sampled.nodes if _waits(node) and not _in_backward(node))
    return Stopped(
        surely_us=beyond * own / stopped if stopped else 0.0,
        likely_us=likely,
        most_us=max(likely, max(waiting, sampled.step_us - used.on_us - used.delayed_us) - itself),
    )


def _beyond_chance(sampled: SampledHost, used: ThreadUse) -> float:
    """Of the time that others ran while the thread was off its core, that of the lock, in µs.

    They ran for G with the lock and for F without; F falls on the time that the thread is on its core, or off it for
    another reason, in proportion. Both F and G follow from how much they ran while it was on its core.
    """
    beside = sum(used.stopped_us)
    on = max(0.0, sampled.step_us - used.off_us)
    meanwhile = max(0.0, sum(other.us for other in sampled.others) - beside)
    if on - meanwhile <= ON_ITS_CORE * on:
        return 0.0
    return min(beside, max(0.0, (beside * on - used.off_us * meanwhile) / (on - meanwhile)))


def _waits(node: HostNode) -> bool:
    """Whether the thread waits in this function by itself: for a lock, a file, a loader, autograd."""
    if node.phase is Phase.DATA or _in_backward(node):
        return True
    return node.owner == "python" and any(in_package(node.file, place) for place in WAITS)


def _in_backward(node: HostNode) -> bool:
    return node.phase is not Phase.DATA and node.function.rpartition(".")[2] == _ENGINE
