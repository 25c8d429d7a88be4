"""From a trace that may hold several programs to the one that is analysed, and to what is said of the others."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.cost.devices import device_times
from syncscan.errors import UsageError
from syncscan.facts.period import step_period
from syncscan.facts.processes import of_process, processes, share_correlations
from syncscan.model.integrity import Lack
from syncscan.model.interval import Interval
from syncscan.model.step import ProcessSteps
from syncscan.model.trace import Trace

TOLD = 8
"""Processes whose steps are measured; a trace that claims thousands would take a reading of itself for each."""


def apart(trace: Trace, process: str | None = None) -> tuple[Trace, tuple[ProcessSteps, ...], tuple[Lack, ...]]:
    """The program to analyse; what each of several takes, that one first; and what there is to say of that.

    A trace of one program comes back as it is, with nothing to say.

    Args:
        trace: any trace.
        process: pid of the program to analyse, by default the one with the most steps.

    Raises:
        UsageError: the trace holds no such process.
    """
    pids = processes(trace)
    if process is not None and process not in pids:
        raise UsageError(
            f"{trace.info.path} holds no process {process} that launches work.", f"It has {', '.join(pids)}."
        )
    if len(pids) < 2:
        return trace, (), ()
    pids = tuple(sorted(pids, key=lambda pid: pid != process))
    traces = [of_process(trace, pid) for pid in pids[:TOLD]]
    found = tuple(_steps(pid, one) for pid, one in zip(pids[:TOLD], traces, strict=True))
    lacks = [Lack(_sentence(found, len(pids)))]
    if share_correlations(trace):
        lacks.append(Lack("Its processes number their launches alike: whose work is whose can't be told.", True, True))
    return traces[0], found, tuple(lacks)


def _steps(pid: str, trace: Trace) -> ProcessSteps:
    steps = [Interval(step.ts, step.end) for step in trace.main_steps]
    devices = device_times(trace, steps) if steps else ()
    return ProcessSteps(pid, len(steps), step_period(trace) / 1e3, devices)


def _sentence(found: Sequence[ProcessSteps], count: int) -> str:
    others = "; ".join(_said(process) for process in found[1:])
    more = f"; and {count - len(found)} more" if count > len(found) else ""
    said = f"The trace holds {count} processes: all this is said of process {found[0].process} alone"
    return f"{said} (--process PID chooses another). Beside it: {others}{more}."


def _said(process: ProcessSteps) -> str:
    took = f"{process.process} takes {process.observed_us / 1e3:.3g} ms"
    if not process.count:
        return f"{took} in all"
    works = (f"device {d.device} works {min(1.0, d.busy_us / process.observed_us):.0%}" for d in process.devices)
    return f"{took} a step" + "".join(f", {text}" for text in works)
