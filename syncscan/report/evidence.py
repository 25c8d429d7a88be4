"""From one finding to a Markdown block for a pull request: where the claim that this line waits comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import numpy as np

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Source
from syncscan.report.markup import code, escaped
from syncscan.report.phrases import USES, certainty, chain, place, places, projected, share
from syncscan.report.story import story_of
from syncscan.report.units import duration, times
from syncscan.version import __version__


def render(analysis: Analysis, finding: Finding) -> str:
    """The evidence for one finding: line, chain, wait, bubble, how often, how measured, and what removal would gain."""
    d = finding.diagnosis
    where = code(places(finding.where) or finding.where.op or finding.api)
    blocks = [
        f"**{where}: {escaped(d.title)}**",
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in _facts(analysis, finding))]),
        f"**Why** {escaped(d.why)}",
        f"**Instead** {escaped(d.fix)}",
        f"**Safe to remove** {USES[finding.where.use]}.",
        f"**Fine** {escaped(d.when_fine)}",
        f"<sub>{_origin(analysis, finding)}</sub>",
    ]
    return "\n\n".join(blocks) + "\n"


def _facts(analysis: Analysis, f: Finding) -> Iterator[tuple[str, str]]:
    w, s = f.where, analysis.step
    if w.source:
        yield "line", f"{_bar(code(place(w.source)))} {escaped(certainty(w.source))}"
    if w.framework:
        yield "called from", f"{_bar(code(f'{w.framework.file}:{w.framework.line} {w.framework.function}'))}"
    if w.scope:
        yield "scope", _bar(code(" > ".join(w.scope)))
    if w.module:
        yield "module", _bar(code(" > ".join(w.module)))
    yield "chain", _bar(code(" > ".join(chain(f)), 400))
    yield "when", f"{w.phase.value}, thread {_bar(code(w.thread))}"
    yield "how often", f"{times(f.per_step)} ({f.count} in {s.count or 1} {'step' if s.count == 1 else 'steps'})"
    if not s.waits_withheld:
        yield "wait, measured", f"{share(f.wait_us, s)} a step{_each(f)}"
        yield "device idle behind it, measured", f"{share(f.bubble_us, s)} a step"
    if f.gain:
        yield "gain, projected", projected(f, s)
    story = story_of(analysis)
    yield "the step", f"{duration(s.observed_us)}. {story.verdict}: {escaped(story.because)}"
    yield "steps", escaped(story.steps_found)
    yield "confidence", f"{f.confidence.value} (rule {code(f.rule)}, cause {f.diagnosis.cause.value})"


def _each(f: Finding) -> str:
    """How much the single waits differ."""
    waits = np.array([o.cost.wait_ns for o in f.occurrences], dtype=np.float64) / 1e3
    if len(waits) < 2:
        return ""
    return f"; each {duration(float(np.median(waits)))} ({duration(waits.min())} to {duration(waits.max())})"


def _how_placed(source: Source) -> str:
    if source.exact:
        return "The line was recorded at the sync itself, by a callback of torch."
    frames = "The function comes from the profiler's Python frames, which don't tell the line"
    return (
        f"{frames}; the lines in it that can be this op were looked up in the source."
        if source.candidates
        else f"{frames}."
    )


def _bar(markdown: str) -> str:
    return markdown.replace("|", "\\|")


def _origin(analysis: Analysis, f: Finding) -> str:
    info, s = analysis.trace.info, analysis.step
    device = f" on {escaped(info.devices[0])}" if info.devices else ""
    how = [
        f"Measured by syncscan {__version__} in the torch.profiler trace {code(PurePath(info.path).name)}{device}:",
        "a wait is the part of the call during which work launched before it still ran; API overhead is left out.",
    ]
    if f.where.source:
        how.append(_how_placed(f.where.source))
    if f.gain:
        how.append("The gain is projected by replaying the step without this sync; the wait alone is no loss.")
    if s.unprofiled_us:
        how.append(f"Without the profiler the step takes {duration(s.unprofiled_us)}.")
    return " ".join([*how, f"Finding {code(f.id)}."])
