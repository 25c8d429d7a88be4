"""From a trace to its sync points: finds the calls that wait for the device and names each by the first rule that fits."""

from __future__ import annotations

from dataclasses import replace

from syncscan.detect.call import Call
from syncscan.detect.calls import blocking_calls
from syncscan.detect.rules import RULES, unclassified
from syncscan.model.finding import Diagnosis, SyncPoint
from syncscan.model.trace import Category, Trace
from syncscan.model.work import DeviceWork


def detect(trace: Trace) -> tuple[tuple[SyncPoint, ...], tuple[str, ...]]:
    """Find and name the sync points of a trace.

    Returns:
        The sync points, in order of thread and time, and warnings: a rule that raises is named there and skipped.
    """
    naming = _Naming()
    threads = _program_threads(trace)
    points = [_point(call, naming.diagnose(call), threads, trace) for call in blocking_calls(trace, DeviceWork(trace))]
    return tuple(points), tuple(naming.warnings)


class _Naming:
    """Asks the rules in their order; remembers those that raised."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.warnings: list[str] = []

    def diagnose(self, call: Call) -> Diagnosis:
        for rule in RULES:
            if rule.ID in self.broken:
                continue
            try:
                diagnosis = rule.match(call)
            except Exception as e:
                self.broken.add(rule.ID)
                self.warnings.append(f"The rule {rule.ID} failed ({type(e).__name__}: {e}) and was skipped.")
                continue
            if diagnosis is not None:
                return diagnosis
        return unclassified.match(call)


def _point(call: Call, diagnosis: Diagnosis, threads: set[int], trace: Trace) -> SyncPoint:
    if call.track not in threads or not _in_steps(call, trace):
        diagnosis = replace(diagnosis, intended=True)
    return SyncPoint(
        calls=call.rows,
        api=call.api,
        ops=call.chain,
        track=call.track,
        ts=call.ts,
        end=call.end,
        device=call.device,
        stream=call.stream,
        diagnosis=diagnosis,
    )


def _program_threads(trace: Trace) -> set[int]:
    """Tracks that run the program's ops or steps; a wait elsewhere (pinning, NCCL's watchdog) holds nobody up."""
    s = trace.slices
    own = {int(t) for t in s.track[trace.is_category(Category.CPU_OP, Category.ANNOTATION)]}
    return own or {int(t) for t in s.track[trace.is_category(Category.RUNTIME)]}


def _in_steps(call: Call, trace: Trace) -> bool:
    """False before the first and after the last step: warm-up and the profiler's own work."""
    return not trace.steps or trace.steps[0].ts <= call.ts < max(step.end for step in trace.steps)


__all__ = ["detect"]
