"""Choose the process to analyze in a trace that may hold several, and describe the others."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.cost.devices import device_times
from syncscan.errors import UsageError
from syncscan.facts.period import step_period
from syncscan.facts.split_processes import of_process, processes, share_correlations
from syncscan.model.duration import duration
from syncscan.model.integrity import Lack
from syncscan.model.interval import Interval
from syncscan.model.step import ProcessSteps
from syncscan.model.trace import Trace

MOST_PROCESSES = 8
"""Number of processes whose steps are measured; each costs a pass over the trace, and a trace may claim thousands."""


def apart(trace: Trace, process: str | None = None) -> tuple[Trace, tuple[ProcessSteps, ...], tuple[Lack, ...]]:
    """Return the trace of one process, the step time of each process (that one first), and what data is missing.

    A trace with a single process is returned unchanged.

    Args:
        process: pid of the program to analyze; by default, the one with the most steps.

    Raises:
        UsageError: the trace holds no such process.
    """
    pids = processes(trace)
    if process is not None and process not in pids:
        raise UsageError(
            f"{trace.info.path} has no process {process} that launches work.", f"It has {', '.join(pids)}."
        )
    if len(pids) < 2:
        return trace, (), ()
    pids = tuple(sorted(pids, key=lambda pid: pid != process))
    traces = [of_process(trace, pid) for pid in pids[:MOST_PROCESSES]]
    measured = tuple(_steps(pid, one) for pid, one in zip(pids[:MOST_PROCESSES], traces, strict=True))
    lacks = [Lack(_sentence(measured, len(pids)))]
    if share_correlations(trace):
        lacks.append(Lack("Its processes share launch numbers, so work can't be assigned to a process.", True, True))
    return traces[0], measured, tuple(lacks)


def _steps(pid: str, trace: Trace) -> ProcessSteps:
    steps = [Interval(step.ts, step.end) for step in trace.main_steps]
    devices = device_times(trace, steps) if steps else ()
    return ProcessSteps(pid, len(steps), step_period(trace) / 1e3, devices)


def _sentence(processes: Sequence[ProcessSteps], count: int) -> str:
    described = "; ".join(_describe(process) for process in processes[1:])
    more = f"; and {count - len(processes)} more" if count > len(processes) else ""
    sentence = f"The trace holds {count} processes: this report covers process {processes[0].process} only"
    return f"{sentence} (--process PID chooses another). Others: {described}{more}."


def _describe(process: ProcessSteps) -> str:
    took = f"{process.process} takes {duration(process.observed_us)}"
    if not process.count:
        return f"{took} in total"
    works = (f"device {d.device} busy {min(1.0, d.busy_us / process.observed_us):.0%}" for d in process.devices)
    return f"{took} per step" + "".join(f", {text}" for text in works)
