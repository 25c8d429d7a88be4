"""Yield the habit for time that the step's thread was off its core while another Python thread ran."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.habits.rules.sampled_work import LEAST_SAMPLES, SURELY, by_phase, deviation, gained
from syncscan.model.duration import duration
from syncscan.model.finding import Confidence, Phase
from syncscan.model.habit import Habit, SampledTime
from syncscan.model.host import HostNode, OtherThread, SampledHost, ThreadUse
from syncscan.model.libraries import in_package

WAITS = "threading.py queue.py selectors.py socket.py ssl.py subprocess.py multiprocessing concurrent asyncio".split()
"""Files and packages of the standard library in which a thread waits of its own accord."""
_PINS = "_pin_memory_loop"
"""Function by which Python names a DataLoader's thread."""
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
    if used is None or used.delayed_us is None or not sampled.others or _by_loader(sampled):
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


def _by_loader(sampled: SampledHost) -> bool:
    """Return whether it was mostly a DataLoader's threads that ran meanwhile, whose work can't be moved.

    It pins batches in a thread, as in pytorch/examples' `mnist`, whose step waited for its batch.
    """
    loader = sum(other.beside_us for other in sampled.others if _PINS in other.name)
    return 2 * loader > sum(other.beside_us for other in sampled.others)


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


NAMED = 2
"""Number of threads named in the evidence."""


def find(context: Context) -> Iterable[Habit]:
    sampled = context.sampled
    stopped = stopped_by_others(sampled) if sampled else None
    if sampled is None or stopped is None or stopped.surely_us < context.notable_us:
        return
    samples = sampled.samples * stopped.surely_us / sampled.step_us
    if samples < LEAST_SAMPLES:
        return
    sure = deviation(samples)
    low, high = SURELY * (1 - sure) * stopped.surely_us, min((1 + sure) * stopped.likely_us, stopped.most_us)
    habit = context.habit("lock-held", [], stopped.likely_us, _evidence(sampled, stopped), confidence=Confidence.MEDIUM)
    placed = SampledTime(_waits_for(sampled), stopped.by_phase)
    yield gained(context, replace(habit, per_step=1.0, sampled=placed), stopped.likely_us, low, high)


def _evidence(sampled: SampledHost, stopped: Stopped) -> list[str]:
    ran = _running_beside(sampled)
    threads = [
        f"thread {other.name} ran for {duration(other.us)} per step, {other.beside_us / other.us:.0%} of it while the "
        f"step's thread was off-CPU{', in ' + other.places[0] if other.places else ''}"
        for other in ran[:NAMED]
    ]
    backward = stopped.likely_us - stopped.surely_us
    also = f", and for {duration(backward)} in backward" if backward else ""
    return [
        f"the step's thread was blocked for {duration(stopped.surely_us)} ({stopped.surely_us / sampled.step_us:.0%}"
        f" of the step) outside of its own waits{also}; it was off-CPU for "
        f"{duration(stopped.most_us)} in total",
        *threads,
    ]


def _running_beside(sampled: SampledHost) -> list[OtherThread]:
    """Return the threads that ran while the step's thread was off its core, longest first."""
    return sorted((o for o in sampled.others if o.beside_us), key=lambda other: -other.beside_us)


def _waits_for(sampled: SampledHost) -> str:
    """Return that the thread waits for the lock, and its likely holder: `held by THREAD: FUNCTION, FILE:LINE`."""
    holder = next(iter(_running_beside(sampled)), None)
    if holder is None:
        return "waits for the GIL"
    place, _, function = holder.places[0].partition(" ") if holder.places else ("", "", "")
    return f"waits for the GIL, held by {holder.name}" + (f": {function}, {place}" if place else "")
