"""Describe a program's whole run: a sentence; a dry run's parts, in which nothing is timed, in a table.

Names are as they were recorded: each renderer escapes them for its own medium.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec

from syncscan.facts.inner_phases import inner_phases
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding
from syncscan.model.program_run import PhaseKind, RunPhase
from syncscan.report import dry_run
from syncscan.report.blocks import Block, Grid, GridColumn, Heading, Sentence, Stacked, Words, code
from syncscan.report.phrases import real, whereabouts
from syncscan.report.timed_steps import unprofiled
from syncscan.report.units import duration, percent

WORTH = 0.02
"""Least fraction of the run's time that a mentioned phase takes."""
OFF = 0.15
"""Relative difference from which the timed steps and the run's own steps count as different."""
BEFORE, AROUND = 8, 8
"""How many steps before a phase the command starts that records it, past those that warm the profiler up; and how many
steps it records, so that the phase is among them though a step more or less is counted."""
SHOWN_FROM = 0.05
"""Part of the run outside of its steps from which on a first screen shows the run."""
_WORKERS_STAY = "persistent_workers=True keeps its workers"


def sentence(analysis: Analysis, program: Sequence[str] = ("train.py",)) -> str:
    """Return what the recorded steps represent in the run, a sentence; empty if the run wasn't watched."""
    run, inside = analysis.run, _inside(analysis)
    if run is None:
        return f"{inside[:1].upper()}{inside[1:]}." if inside else ""
    if run.mean_us is None:
        parts = "; ".join(f"{phase.name} ({place(phase)}{_times(phase)})" for phase in run.phases)
        return f"The program also repeats work between its steps: {parts}." if parts else ""
    if run.steps_share is None:
        return f"The run's {run.counted} undisturbed steps took {duration(run.mean_us)} on average."
    share, mean = _share(run.steps_share), duration(run.mean_us * run.steps_share)
    steps = f"{_like_recorded(analysis)} {share} of the run's time, {mean} each on average{_apart(analysis)}"
    rest = ", ".join(map(_part, filter(_is_worth, run.phases)))
    return (
        "; ".join(filter(None, (steps, f"the rest: {rest}" if rest else "", inside, _pointer(analysis, program)))) + "."
    )


class RunBar(msgspec.Struct, frozen=True):
    """The run as one bar of shares, and what they are in a sentence; without parts where nothing was timed."""

    parts: tuple[tuple[str, float], ...]
    """Name and share of the steps, then of the phases between them."""
    sentence: str


def run_bar(analysis: Analysis) -> RunBar | None:
    """Return the run's shares, if a phase takes a part of it that is worth knowing; of a dry run, what repeats."""
    run = analysis.run
    if dry_run.is_dry(analysis):
        text = sentence(analysis)
        return RunBar((), text) if text else None
    if run is None or run.steps_share is None or run.steps_share > 1 - SHOWN_FROM:
        return None
    worth = [phase for phase in run.phases if (phase.share or 0.0) >= WORTH]
    recorded = dict(zip((p.name for p in run.phases), analyses_of(analysis), strict=True))
    texts = [f"steps {run.steps_share:.0%}"]
    for phase in worth:
        missing = "" if recorded.get(phase.name) else "; not recorded"
        texts.append(f"{phase.name} {phase.share or 0.0:.0%} ({place(phase)}{missing})")
    parts = ("steps", run.steps_share), *((phase.name, phase.share or 0.0) for phase in worth)
    return RunBar(parts, ", ".join(texts))


def gain_share(analysis: Analysis) -> float | None:
    """Return the fraction of the run's time that removing all recorded syncs would save; None where unknown."""
    run = analysis.run
    saved = saved_share(analysis)
    return None if run is None or run.steps_share is None or saved is None else run.steps_share * saved


def blocks(analysis: Analysis) -> Iterator[Block]:
    """Yield what else the run does: a sentence, and of a dry run, which has no shares, what waits between steps."""
    if text := sentence(analysis):
        yield Sentence(text)
    run = analysis.run
    if run is not None and run.mean_us is None and run.phases:
        yield Heading("Between the steps")
        rows = (_row(phase, of) for phase, of in zip(run.phases, analyses_of(analysis), strict=True))
        yield Grid((GridColumn("part"), GridColumn("where"), GridColumn("waits")), tuple(rows))


def analyses_of(analysis: Analysis) -> Sequence[Analysis | None]:
    """Return the analysis of each phase of a dry run; None for those of a recording."""
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


def _part(phase: RunPhase) -> str:
    """Return a phase in words: `rollout 61% (ppo.py:190-210, each 16 steps)`."""
    every = f", each {phase.every:.2g} steps" if phase.every and phase.every > 1 else ""
    stay = f"; {_WORKERS_STAY}" if phase.kind == PhaseKind.LOADER.value else ""
    return f"{phase.name} {_share(phase.share)} ({place(phase)}{every}{stay})"


def _inside(analysis: Analysis) -> str:
    """Return which part of each step is another phase: `in each step, generation takes 72% (grpo.py:12)`."""
    phases = inner_phases(analysis.host_time.sampled)
    parts = [f"{kind.value} takes {_share(share)} ({place})" for kind, share, place in phases]
    return f"in each step, {', '.join(parts)}" if parts else ""


def _pointer(analysis: Analysis, program: Sequence[str]) -> str:
    """Return the command that records the longest phase."""
    phases = analysis.run.phases if analysis.run else ()
    phase = next((p for p in phases if _is_worth(p) and p.kind != PhaseKind.LOADER.value), None)
    if phase is None or phase.seen_at is None:
        return ""
    first = max(0, (phase.seen_at or 0) - BEFORE)
    options = ["--start-at", str(first), "--calibrate", "0", "--active", str(AROUND)]
    return f"`{shlex.join(['syncscan', 'profile', *options, *program])}` records the {phase.name}"


def place(phase: RunPhase) -> str:
    name = PurePath(phase.file.replace(chr(92), "/")).name
    return f"{name}:{phase.first}" + (f"-{phase.last}" if phase.last > phase.first else "")


def _apart(analysis: Analysis) -> str:
    """Return how long the timed steps took, where the run's own took another time."""
    run, timed = analysis.run, analysis.step.unprofiled_us
    if run is None or run.steps_share is None or run.mean_us is None or not timed:
        return ""
    return f" (timed ones {unprofiled(analysis)})" if abs(run.mean_us * run.steps_share - timed) > OFF * timed else ""


def saved_share(analysis: Analysis) -> float | None:
    step = analysis.step
    whole = step.unprofiled_us or step.observed_us
    return step.recoverable_us / whole if step.recoverable_us is not None and whole else None


def _row(phase: RunPhase, of: Analysis | None) -> tuple[Words | Stacked, ...]:
    waits = [_wait(finding, phase) for finding in (real(of.findings) if of is not None else [])]
    return phase.name, code(place(phase)), Stacked((verdict_of(phase, of), *waits))


def verdict_of(phase: RunPhase, of: Analysis | None) -> str:
    """Return in how many places a phase of a dry run waits, and how often it ran."""
    places = len(real(of.findings)) if of is not None else 0
    return f"{places} place{'s' * (places != 1)} would block the host{_times(phase)}"


def _wait(f: Finding, phase: RunPhase) -> str:
    often = "once" if f.per_step == 1 else f"{f.per_step:.3g} times"
    return f"{f.title} ({whereabouts(f)}), {often} {'a round' if phase.rounds else 'each time'}"
