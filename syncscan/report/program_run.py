"""Describe a program's whole run: a sentence, a table, a strip.

Names are as they were recorded: each renderer escapes them for its own medium.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.program_run import PhaseKind, RunPhase
from syncscan.model.step import StepSummary
from syncscan.report.phrases import real, sentences, waited, whereabouts
from syncscan.report.units import duration, percent, times

TITLE = "The run"
WORTH = 0.02
"""Least fraction of the run's time that a mentioned phase takes."""
OFF = 0.15
"""Relative difference from which the timed steps and the run's own steps count as different."""
SHOWN = 5
"""Findings shown per phase; JSON has them all."""
STRIP = 400
"""Cells of the strip, equal parts of the run's time."""


class PhaseRow(msgspec.Struct, frozen=True):
    """A row of the run's table: a part of the run, its share, place and verdict, and what waits in it."""

    name: str
    share: str
    where: str
    verdict: str
    waits: tuple[str, ...]
    more: int
    """Findings that are left out of `waits`."""
    trace: str


class StripPart(msgspec.Struct, frozen=True):
    """A part of the strip: width in percent, and phase index (-1 the steps, -2 the capture's own work)."""

    width: float
    phase: int


def sentence(analysis: Analysis) -> str:
    """Return what the recorded steps represent in the run, in a few sentences; empty if the run wasn't watched."""
    run = analysis.run
    if run is None:
        return ""
    if run.mean_us is None:
        parts = "; ".join(f"{phase.name} ({_place(phase)}{_times(phase)})" for phase in run.phases)
        return f"The program also repeats work between its steps: {parts}." if parts else ""
    of_steps = run.mean_us if run.steps_share is None else run.mean_us * run.steps_share
    typical = f"{run.counted} undisturbed steps took {duration(of_steps)} on average"
    if run.steps_share is None:
        return f"The run's {typical}."
    typical += " without its other parts" if run.phases else ""
    first = f"{_like_recorded(analysis)} {_share(run.steps_share)} of the run's time: its {typical}."
    pairs = zip(run.phases, analyses_of(analysis), strict=True)
    parts = "; ".join(_part(phase, of) for phase, of in pairs if _is_worth(phase))
    return sentences(first, f"The rest: {parts}." if parts else "", _gain(analysis), _apart(analysis))


def leads(analysis: Analysis) -> bool:
    """Return whether the first screen mentions the run: the recorded steps don't represent nearly all of it."""
    run = analysis.run
    if run is None or run.steps_share is None:
        return run is not None and run.mean_us is None and bool(run.phases)
    return run.steps_share < 1 - WORTH or bool(_apart(analysis))


def gain_share(analysis: Analysis) -> float | None:
    """Return the fraction of the run's time that removing all recorded syncs would save; None where unknown."""
    run = analysis.run
    if run is None or run.steps_share is None:
        return None
    parts = [
        (run.steps_share, analysis),
        *((p.share, a) for p, a in zip(run.phases, analyses_of(analysis), strict=True)),
    ]
    known = ((share, saved_share(of)) for share, of in parts if share is not None and of is not None)
    gains = [share * gain for share, gain in known if gain is not None]
    return sum(gains) if gains else None


def rows(analysis: Analysis) -> list[PhaseRow]:
    """Return the phases worth mentioning, longest first."""
    run = analysis.run
    if run is None:
        return []
    phases = zip(run.phases, analyses_of(analysis), strict=True)
    return [_row(phase, of) for phase, of in phases if _is_worth(phase) or of is not None]


def strip(analysis: Analysis) -> list[StripPart]:
    """Return the run from its first step to its last, as cells; empty without samples."""
    run = analysis.run
    if run is None or not run.intervals or not run.watched_us:
        return []
    width = run.watched_us / STRIP
    held = [[0.0] * (len(run.phases) + 2) for _ in range(STRIP)]
    for interval in run.intervals:
        _fill(held, interval.begin_us, interval.end_us, width, -1 if interval.phase is None else interval.phase)
    for interval in run.disturbed[1:]:
        _fill(held, interval.begin_us, interval.end_us, width, -2)
    cells: list[StripPart] = []
    for part in held:
        most = max(range(len(part)), key=lambda k: part[k])
        phase = -1 if not part[most] else most if most < len(run.phases) else most - len(part)
        if cells and cells[-1].phase == phase:
            cells[-1] = StripPart(cells[-1].width + 100 / STRIP, phase)
        else:
            cells.append(StripPart(100 / STRIP, phase))
    return cells


_RECORDS = "prof.step() of syncscan.profile in its loop ({}) records it"
"""How a phase is recorded that a capture of the whole run doesn't reach."""


def analyses_of(analysis: Analysis) -> Sequence[Analysis | None]:
    """Return the analysis of each phase of the run; None for one that wasn't recorded."""
    count = len(analysis.run.phases) if analysis.run else 0
    return analysis.phases if len(analysis.phases) == count else (None,) * count


def _like_recorded(analysis: Analysis) -> str:
    count = len(analysis.trace.steps)
    return f"Steps like {'this one' if count == 1 else f'these {count}' if count else 'the recorded ones'} take"


def _is_worth(phase: RunPhase) -> bool:
    return phase.share is None or phase.share >= WORTH


def _share(share: float | None) -> str:
    return "" if share is None else percent(share, 1.0)


def _times(phase: RunPhase) -> str:
    """Return how often a phase ran, as far as known: `, 16 rounds each time, each 8 steps`."""
    rounds = f", {phase.rounds:.3g} rounds each time" if phase.rounds else ""
    return rounds + (f", each {phase.every:.3g} steps" if phase.every and phase.every > 1 else "")


def _part(phase: RunPhase, of: Analysis | None) -> str:
    """Return a phase in words: `rollout 61% (ppo.py:190-210, each 16 steps)`, and why it wasn't recorded."""
    every = f", each {phase.every:.3g} steps" if phase.every and phase.every > 1 else ""
    why = f", not recorded: {phase.missing}" if phase.missing and of is None else ""
    return f"{phase.name} {_share(phase.share)} ({_place(phase)}{every}{why})"


def _place(phase: RunPhase) -> str:
    name = PurePath(phase.file.replace(chr(92), "/")).name
    return f"{name}:{phase.first}" + (f"-{phase.last}" if phase.last > phase.first else "")


def _gain(analysis: Analysis) -> str:
    """Return how much of the whole run its syncs cost, where more than the steps is recorded."""
    share, alone = gain_share(analysis), saved_share(analysis)
    if share is None or share < WORTH / 2 or alone is None:
        return ""
    return f"Without the recorded syncs, the run would be {_share(share)} shorter."


def _apart(analysis: Analysis) -> str:
    """Return how long the timed steps and the run's own took, where they differ."""
    run, timed = analysis.run, analysis.step.unprofiled_us
    if run is None or run.steps_share is None or run.mean_us is None or not timed:
        return ""
    run_us = run.mean_us * run.steps_share
    if abs(run_us - timed) <= OFF * timed:
        return ""
    slower = "slower" if run_us > timed else "faster"
    return f"The steps that the capture timed took {duration(timed)}: on average, the run's are {slower}."


def saved_share(analysis: Analysis) -> float | None:
    """Return the fraction of a step that removing its syncs would save; None without a projection."""
    step = analysis.step
    whole = step.unprofiled_us or step.observed_us
    return step.recoverable_us / whole if step.recoverable_us is not None and whole else None


def _row(phase: RunPhase, of: Analysis | None) -> PhaseRow:
    findings = real(of.findings) if of is not None else []
    shown = SHOWN if phase.trace else len(findings)
    waits = tuple(_wait(finding, of.step, phase) for finding in findings[:shown]) if of is not None else ()
    return PhaseRow(
        name=phase.name,
        share=_share(phase.share),
        where=_place(phase),
        verdict=verdict_of(phase, of),
        waits=waits,
        more=max(0, len(findings) - shown),
        trace=phase.trace,
    )


def _wait(f: Finding, step: StepSummary, phase: RunPhase) -> str:
    if phase.share is None:
        often = "once" if f.per_step == 1 else f"{f.per_step:.3g} times"
        return f"{f.diagnosis.title} ({whereabouts(f)}), {often} {'a round' if phase.rounds else 'each time'}"
    return f"{f.diagnosis.title} ({whereabouts(f)}), {waited(f.wait_us, step)}, {times(f.per_step)}"


def verdict_of(phase: RunPhase, of: Analysis | None) -> str:
    """Return a phase's verdict: its bound, or why it wasn't recorded."""
    if phase.share is None:
        places = len(real(of.findings)) if of is not None else 0
        waits = f"{places} place{'s' * (places != 1)} would block the host"
        return f"{waits}{_times(phase)}"
    if of is not None:
        saves = saved_share(of)
        without = f", {_share(saves)} less without its syncs" if saves else ""
        return f"{of.step.bound.verdict.capitalize()}{without}"
    if phase.kind == PhaseKind.LOADER.value:
        return "workers start, and the host waits for the first batch: persistent_workers=True keeps them"
    if phase.missing or phase.share >= WORTH:
        why = f": {phase.missing}" if phase.missing else ""
        return f"not recorded{why}; {_RECORDS.format(_place(phase))}"
    return ""


def _fill(held: list[list[float]], begin: float, end: float, width: float, phase: int) -> None:
    """Add an interval's time to the cells it overlaps."""
    for number in range(max(0, int(begin / width)), min(len(held) - 1, int(end / width)) + 1):
        inside = min(end, (number + 1) * width) - max(begin, number * width)
        held[number][phase] += max(0.0, inside)
