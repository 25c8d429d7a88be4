"""Describe findings or a habit for a pull request, in Markdown: the evidence that they cost step time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import median
from syncscan.model.finding import Finding, Source
from syncscan.model.habit import Basis, Habit
from syncscan.report import markup, source
from syncscan.report.blocks import Block, Code, Sentence, Span, Words, code, facts, place, strong
from syncscan.report.front import front_of
from syncscan.report.named import named
from syncscan.report.phrases import USES, certainty, chain, phase_of, places, projected, replayed, share
from syncscan.report.phrases import place as line_of
from syncscan.report.remedies import describe
from syncscan.report.story import HabitText, graphs, habit_text, steps_found
from syncscan.report.units import duration, times


def of_named(analysis: Analysis, name: str) -> str:
    """Return the evidence for what a user names: that of each finding or habit, and the total gain of several."""
    parts = named(analysis, name)
    blocks: list[Block] = []
    if len(parts) > 1:
        ids = {part.id for part in parts}
        remedy = next(r for r in describe(analysis) if {member.id for member in r.members} == ids)
        title = strong(f"{len(parts)} syncs, to be removed together")
        blocks.append(Sentence((title, f" {remedy.saves}, {remedy.doubt}.")))
    for part in parts:
        blocks += of_habit(analysis, part) if isinstance(part, Habit) else of_finding(analysis, part)
    return markup.drawn(blocks)


def render(analysis: Analysis, finding: Finding) -> str:
    return markup.drawn(of_finding(analysis, finding))


def of_habit(analysis: Analysis, habit: Habit) -> Iterator[Block]:
    text = habit_text(habit, replayed(analysis.step))
    title = habit.title
    yield Sentence(strong(f"{title} ({text.where})" if text.where else title))
    yield facts(_facts_of_habit(analysis, habit, text))
    yield from _texts(why=habit.why, fix=habit.fix, fine=habit.when_fine)
    how = [_HOW[habit.basis]] if habit.basis else []
    yield Sentence(
        (*_recorded(analysis), ". ", " ".join([*how, *_unprofiled(analysis), "Habit "]), code(habit.id), "."), "dim"
    )


def of_finding(analysis: Analysis, f: Finding) -> Iterator[Block]:
    yield Sentence((place(places(f) or f.op or f.call), ": ", strong(f.title)))
    yield facts(_facts(analysis, f))
    yield from _texts(why=f.why, fix=f.fix, safe_to_remove=f"{USES[f.value]}.", fine=f.when_fine)
    yield Sentence((*_recorded(analysis), ": ", " ".join([*_method(analysis, f), "Finding "]), code(f.id), "."), "dim")
    if f.suggested:
        yield Sentence(source.caption(f.suggested))
        yield Code("\n".join(source.diff_lines(f.suggested)), "diff")


def _texts(**texts: str) -> Iterator[Block]:
    for name, text in texts.items():
        yield Sentence((strong(name.replace("_", " ").capitalize()), f" {text}"))


def _facts(analysis: Analysis, f: Finding) -> Iterator[tuple[str, Words]]:
    s = analysis.step
    if f.source:
        yield "line", (place(line_of(f.source)), f" {certainty(f.source)}")
    if f.called_from:
        yield "waits in", place(f"{f.called_from.file}:{f.called_from.line} {f.called_from.function}")
    yield "scope", code(" > ".join(f.scope))
    yield "module", code(" > ".join(f.module))
    yield "chain", code(" > ".join(chain(f)))
    yield "when", (phase_of(f), code(f.thread))
    yield "how often", f"{times(f.per_step)} ({f.count} in {s.count or 1} {'step' if s.count == 1 else 'steps'})"
    if f.wait_us is not None:
        yield "wait, measured", f"{share(f.wait_us, s)} per step{_wait_spread(f)}"
        yield "device idle after it, measured", f"{share(f.idle_us, s)} per step"
    yield "gain, projected", projected(f, s)
    yield from _step(analysis)
    yield "confidence", (f"{f.confidence.value} (rule ", code(f.rule), f", cause {f.cause.value})")


def _facts_of_habit(analysis: Analysis, h: Habit, text: HabitText) -> Iterator[tuple[str, Words]]:
    yield "scope", code(" > ".join(h.scope))
    yield "op", code(h.op)
    for number, proof in enumerate(h.evidence):
        yield "" if number else "evidence, measured", proof
    if h.cost_us is not None:
        yield "takes, measured", f"{duration(h.cost_us)} per step"
    doubt = f"; {text.doubt}" if text.doubt else ""
    yield "gain" if h.basis is None else f"gain, {GAINS[h.basis]}", f"{text.saves}{doubt}"
    yield from graphs(h)
    yield from _step(analysis)
    yield "confidence", (f"{h.confidence.value} (rule ", code(h.rule), ")")


def _step(analysis: Analysis) -> Iterator[tuple[str, Words]]:
    yield "the step", f"{duration(analysis.step.observed_us)}. {front_of(analysis).verdict}"
    yield "steps", steps_found(analysis)


def _wait_spread(f: Finding) -> str:
    waits = np.array([o.wait_ns for o in f.occurrences], dtype=np.float64) / 1e3
    if len(waits) < 2:
        return ""
    return f"; each {duration(median(waits))} ({duration(waits.min())} to {duration(waits.max())})"


def _how_placed(source: Source) -> str:
    if source.exact:
        return "The line was recorded at the sync itself, by a torch callback."
    frames = "The function comes from the profiler's Python frames, which don't record the line"
    return f"{frames}; matching lines were looked up in the source." if source.candidates else f"{frames}."


def _recorded(analysis: Analysis) -> tuple[str | Span, ...]:
    info = analysis.trace.info
    device = f" on {info.devices[0]}" if info.devices and info.devices[0] else ""
    return "Measured in the torch.profiler trace ", code(PurePath(info.path).name), device


def _unprofiled(analysis: Analysis) -> list[str]:
    us = analysis.step.unprofiled_us
    return [f"Without the profiler the step takes {duration(us)}."] if us else []


GAINS = {
    Basis.REPLAY: "projected",
    Basis.SAMPLES: "projected from samples",
    Basis.UPPER_BOUND: "an upper bound",
}
_HOW = {
    Basis.REPLAY: "The gain is projected by replaying the step without it.",
    Basis.SAMPLES: "The gain is projected from host samples, taken without the profiler.",
    Basis.UPPER_BOUND: "The gain isn't projected: the time that the habit takes is an upper bound.",
}


def _method(analysis: Analysis, f: Finding) -> Iterator[str]:
    yield "A wait is the part of the call during which previously launched work still ran; API overhead is excluded."
    if f.source:
        yield _how_placed(f.source)
    if f.recoverable_us is not None:
        yield "The gain is projected by replaying the step without this sync; a wait by itself isn't a loss."
    yield from _unprofiled(analysis)
