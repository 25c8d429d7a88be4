"""From what a step's thread used while it was sampled to how long others stopped it by the interpreter's lock.

No clock tells that a thread wanted the lock. But who holds it runs, and who waits for it doesn't: what counts is time
in which the step's thread was off its core, not for want of one, while another thread of Python's ran, in code that
doesn't wait by itself. Of that the part goes that chance explains: a thread that needs no lock, as in a call of
numpy's, runs while the step's is on its core just as well.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Stopped:
    """How long the step's thread was stopped by others, in µs a step."""

    likely_us: float
    """In code that doesn't wait by itself, and more than chance explains."""
    most_us: float
    """All that it was off its core while others ran."""


def stopped_by_others(sampled: SampledHost) -> Stopped | None:
    """How long others stopped the step's thread; None where capture didn't ask, or nothing can be said."""
    used = sampled.used
    if used is None or used.delayed_us is None or not sampled.others:
        return None
    waiting = max(0.0, used.off_us - used.delayed_us)
    most = min(sum(used.stopped_us), waiting)
    unasked = sum(us for us, node in zip(used.stopped_us, sampled.nodes, strict=True) if not _waits(node))
    share = unasked / sum(used.stopped_us) if sum(used.stopped_us) else 0.0
    return Stopped(likely_us=min(share * _beyond_chance(sampled, used), most), most_us=most)


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
    if node.phase is Phase.DATA or node.function.rpartition(".")[2] == _ENGINE:
        return True
    return node.owner == "python" and any(in_package(node.file, place) for place in WAITS)
