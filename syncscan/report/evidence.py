"""Render findings or a habit as Markdown for a pull request: the evidence that they cost step time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.arrays import median
from syncscan.model.finding import Finding, Source
from syncscan.model.habit import Basis, Habit
from syncscan.report import habits, suggested_fix
from syncscan.report.habits import HabitText
from syncscan.report.markup import code, escaped
from syncscan.report.named import named
from syncscan.report.phrases import USES, certainty, chain, phase_of, place, places, projected, share
from syncscan.report.story import story_of
from syncscan.report.units import duration, times
from syncscan.version import __version__


def of_named(analysis: Analysis, name: str) -> str:
    """Return the evidence for what a user names: a block per finding or habit, and the total gain of several.

    Raises:
        UsageError: nothing, or more than one thing, is called that.
    """
    parts = named(analysis, name)
    blocks = [of_habit(analysis, part) if isinstance(part, Habit) else render(analysis, part) for part in parts]
    if len(parts) > 1:
        ids = {part.id for part in parts}
        remedy = next(r for r in story_of(analysis).remedies if {member.id for member in r.members} == ids)
        blocks.insert(
            0, f"**{len(parts)} syncs, to be removed together** {escaped(f'{remedy.saves}, {remedy.doubt}')}.\n"
        )
    return "\n".join(blocks)


def of_habit(analysis: Analysis, habit: Habit) -> str:
    """Return the evidence for one habit: its proof, its cost, and the step's gain without it."""
    text = next(t for t in story_of(analysis).habits if t.id == habit.id)
    head = f"**{escaped(text.title)}{f' ({escaped(text.where)})' if text.where else ''}**"
    return _block(
        head,
        _facts_of_habit(analysis, habit, text),
        [("Why", text.why), ("Fix", text.fix), ("Fine", text.when_fine)],
        _origin_of_habit(analysis, habit),
    )


def _block(head: str, facts: Iterable[tuple[str, str]], texts: Iterable[tuple[str, str]], origin: str) -> str:
    """Return a headline, table of facts, paragraphs and origin; facts and origin are Markdown already."""
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts)])
    blocks = [head, table, *(f"**{name}** {escaped(text)}" for name, text in texts), f"<sub>{origin}</sub>"]
    return "\n\n".join(blocks) + "\n"


def render(analysis: Analysis, finding: Finding) -> str:
    """Return the evidence for one finding: line, op chain, wait, bubble, frequency, method, and projected gain."""
    d = finding.diagnosis
    place = code(places(finding.where) or finding.where.op or finding.api)
    use = f"{USES[finding.where.use]}."
    block = _block(
        f"**{place}: {escaped(d.title)}**",
        _facts(analysis, finding),
        [("Why", d.why), ("Fix", d.fix), ("Safe to remove", use), ("Fine", d.when_fine)],
        _origin(analysis, finding),
    )
    return f"{block}\n{suggested_fix.markdown(finding.suggested)}" if finding.suggested else block


def _facts(analysis: Analysis, f: Finding) -> Iterator[tuple[str, str]]:
    w, s = f.where, analysis.step
    if w.source:
        yield "line", f"{_bar(code(place(w.source)))} {escaped(certainty(w.source))}"
    if w.framework:
        yield "waits in", f"{_bar(code(f'{w.framework.file}:{w.framework.line} {w.framework.function}'))}"
    if w.scope:
        yield "scope", _bar(code(" > ".join(w.scope)))
    if w.module:
        yield "module", _bar(code(" > ".join(w.module)))
    yield "chain", _bar(code(" > ".join(chain(f)), 400))
    yield "when", f"{phase_of(w)}{_bar(code(w.thread))}"
    yield "how often", f"{times(f.per_step)} ({f.count} in {s.count or 1} {'step' if s.count == 1 else 'steps'})"
    if not s.waits_withheld:
        yield "wait, measured", f"{share(f.wait_us, s)} per step{_wait_spread(f)}"
        yield "device idle after it, measured", f"{share(f.bubble_us, s)} per step"
    if f.gain:
        yield "gain, projected", projected(f, s)
    yield from _step(analysis)
    yield "confidence", f"{f.confidence.value} (rule {code(f.rule)}, cause {f.diagnosis.cause.value})"


def _facts_of_habit(analysis: Analysis, h: Habit, summary: HabitText) -> Iterator[tuple[str, str]]:
    if h.scope:
        yield "scope", _bar(code(" > ".join(h.scope)))
    if h.op:
        yield "op", _bar(code(h.op))
    for number, proof in enumerate(h.evidence):
        yield "" if number else "evidence, measured", escaped(proof)
    if h.cost_us is not None:
        yield "takes, measured", f"{duration(h.cost_us)} per step"
    doubt = f"; {summary.doubt}" if summary.doubt else ""
    yield "gain" if summary.basis is None else f"gain, {GAINS[summary.basis]}", f"{summary.saves}{doubt}"
    yield from ((name, escaped(text)) for name, text in habits.graphs(summary))
    yield from _step(analysis)
    yield "confidence", f"{summary.confidence} (rule {code(h.rule)})"


def _step(analysis: Analysis) -> Iterator[tuple[str, str]]:
    story = story_of(analysis)
    yield "the step", f"{duration(analysis.step.observed_us)}. {story.verdict}: {escaped(story.because)}"
    yield "steps", escaped(story.steps_found)


def _wait_spread(f: Finding) -> str:
    """Return how much the single waits differ."""
    waits = np.array([o.cost.wait_ns for o in f.occurrences], dtype=np.float64) / 1e3
    if len(waits) < 2:
        return ""
    return f"; each {duration(median(waits))} ({duration(waits.min())} to {duration(waits.max())})"


def _how_placed(source: Source) -> str:
    if source.exact:
        return "The line was recorded at the sync itself, by a torch callback."
    frames = "The function comes from the profiler's Python frames, which don't record the line"
    return f"{frames}; matching lines were looked up in the source." if source.candidates else f"{frames}."


def _bar(markdown: str) -> str:
    return markdown.replace("|", "\\|")


def _recorded(analysis: Analysis) -> str:
    info = analysis.trace.info
    device = f" on {escaped(info.devices[0])}" if info.devices and info.devices[0] else ""
    return f"Measured by syncscan {__version__} in the torch.profiler trace {code(PurePath(info.path).name)}{device}"


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


def _origin_of_habit(analysis: Analysis, h: Habit) -> str:
    how = [_HOW[h.gain.basis]] if h.gain else []
    return " ".join([f"{_recorded(analysis)}.", *how, *_unprofiled(analysis), f"Habit {code(h.id)}."])


def _origin(analysis: Analysis, f: Finding) -> str:
    how = [
        f"{_recorded(analysis)}:",
        "A wait is the part of the call during which previously launched work still ran; API overhead is excluded.",
    ]
    if f.where.source:
        how.append(_how_placed(f.where.source))
    if f.gain:
        how.append("The gain is projected by replaying the step without this sync; a wait by itself isn't a loss.")
    return " ".join([*how, *_unprofiled(analysis), f"Finding {code(f.id)}."])
