"""From findings and steps to the phrases that the reports share: what waits, where, how long, and what it would gain.

The phrases hold names of the trace as they stand: each renderer escapes them for its own medium.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from syncscan.facts.period import earlier_work, later_work, step_intervals, window
from syncscan.facts.profiler_overhead import profilers_own_within
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Attribution, Finding, Severity, Source, Use
from syncscan.model.habit import Basis
from syncscan.model.libraries import path_in_package
from syncscan.model.step import REPEATABILITY, StepSummary
from syncscan.model.steps_found import FoundBy
from syncscan.model.trace import NONE, Trace
from syncscan.report.units import duration, percent, times

PROFILERS = 0.01
"""What the profiler's own rows take is worth a sentence where it is more than this part of the steps."""
ACROSS = 0.05
"""Work across the steps' begin and across their end is worth sentences where the two differ by more than this part of a
step; what the loader took before the first, where it is more than that. As much work at both ends is the queue of a
host that runs ahead all the time, and takes nothing from a step's time."""


def real(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that aren't intended waits: those above `info`."""
    return [f for f in findings if f.severity is not Severity.INFO]


def summary(analysis: Analysis) -> str:
    """How many places wait, how often and how long, and how much shorter the step would be without them."""
    found, s = real(analysis.findings), analysis.step
    if not found:
        return "No host-device syncs found."
    places = "1 place waits" if len(found) == 1 else f"{len(found)} places wait"
    often = times(sum(f.per_step for f in found))
    if s.waits_withheld:
        return f"{places} {often}; how long can't be measured."
    waits = f"{places} {often}, {share(s.wait_us, s)}"
    if s.recoverable_us is None:
        return f"{waits}."
    them = "it" if len(found) == 1 else "them"
    return f"{waits}; a step without {them} is {_shorter(s, s.recoverable_us)}."


def _shorter(s: StepSummary, us: float) -> str:
    """`432 µs shorter (9%; up to 571 µs)`."""
    whole, limits = replayed(s), s.recoverable_range_us
    doubt = f"; {spread(limits, whole)}" if limits else ""
    if measurable(us, whole):
        return f"{duration(us)} shorter ({percent(us, whole)}{doubt})"
    most = f" ({spread(limits, whole)})" if limits and measurable(limits[1], whole) else ""
    return f"{saving(us, whole)} shorter{most}"


def steps_found(analysis: Analysis) -> str:
    """How the steps were found, and what of the device's work lies across their begin and their end."""
    return " ".join((_how_found(analysis.trace), *_profilers(analysis), *_across(analysis)))


def _how_found(trace: Trace) -> str:
    found = trace.steps_found
    if found.chosen is None:
        return _all_found(trace, len(trace.steps))
    begin, end = found.chosen
    return f"{_all_found(trace, found.count)[:-1]}; analysed are {begin}:{end} of them, counted from 0, as asked for."


def _all_found(trace: Trace, count: int) -> str:
    found = trace.steps_found
    if found.by is FoundBy.PROFILER:
        return f"Steps are the profiler's marks: {count}."
    if found.by is FoundBy.SCOPE:
        return f"Steps are the ranges called {found.name}: {count}."
    if found.by is FoundBy.FRAMEWORK:
        return f"Steps are ranges named as {found.name} names its steps: {count}."
    if found.by is FoundBy.REPETITION:
        calls = f"{found.calls} call{'s' * (found.calls != 1)}"
        return f"No steps are marked: the shortest sequence that repeats, {calls}, counts as one, {count} times."
    if found.asked:
        return "The whole trace counts as one step, as asked for."
    whole = f"all from {_first(trace)} to last completion" if len(trace.device_rows) else "the whole trace"
    return f"No steps are marked and nothing repeats: {whole} counts as one."


def _profilers(analysis: Analysis) -> Iterator[str]:
    """In how many steps the profiler itself held the host, and for how long, where that matters."""
    own = profilers_own_within(analysis.trace, step_intervals(analysis.trace))
    us, held = sum(own) / 1e3, sum(ns > 0 for ns in own)
    if own and us > PROFILERS * analysis.step.observed_us * len(own):
        where = "in it" if len(own) == 1 else f"in {held} of them" if held < len(own) else "in them"
        yield f"The profiler's own work {where} ({duration(us)}, rows of category overhead) is left out of all times."


def _first(trace: Trace) -> str:
    """What the window of a trace without steps begins with."""
    calls = trace.device_calls[trace.device_calls != NONE]
    loads = len(calls) and window(trace).begin < trace.slices.ts[calls].min()
    return "the loader before the first launch" if loads else "first launch"


def _across(analysis: Analysis) -> Iterator[str]:
    """What of the device's work lies across the begin of the first step and the end of the last, where it matters."""
    ends = earlier_work(analysis.trace), later_work(analysis.trace)
    earlier, later = (interval.length / 1e3 if interval else 0.0 for interval in ends)
    if abs(earlier - later) <= ACROSS * analysis.step.observed_us:
        return
    if earlier:
        works = f"the device works {duration(earlier)} on what was launched before"
        yield f"When the first begins, {works}: that is neither the steps' work nor idle."
    if later and analysis.trace.steps:
        yield f"Behind the last it takes {duration(later)} until what the steps launched is done."
    elif later:
        yield f"When the host is done, the device works {duration(later)} more on what it launched."


def lacking(analysis: Analysis) -> list[str]:
    """What the trace lacks, and what is withheld for it, but for what the verdict's reason says already."""
    return [s for s in analysis.integrity.sentences() if s not in analysis.step.reason]


def waited(us: float, step: StepSummary) -> str:
    """A measured wait or idle time; a dash where the trace can't tell it."""
    return "–" if step.waits_withheld else duration(us)


def replayed(step: StepSummary) -> float:
    """The step that projections are made of, in µs: without the profiler where that is known."""
    return step.unprofiled_us or step.observed_us


def measurable(us: float, step_us: float) -> bool:
    """Whether two measurements of a step could tell a saving from none."""
    return us >= REPEATABILITY * step_us and us > 0.0


def saving(us: float, step_us: float) -> str:
    """What something saves of a step: `432 µs`, or `less than 1%` where that is less than can be measured."""
    return duration(us) if measurable(us, step_us) else f"less than {REPEATABILITY:.0%}"


def figure(us: float, basis: Basis, step_us: float) -> str:
    """What something saves, and its part of the step: `432 µs (9%)`; `at most` where that is only an upper bound."""
    if not measurable(us, step_us):
        return saving(us, step_us)
    most = "at most " if basis is Basis.UPPER_BOUND else ""
    return f"{most}{duration(us)} ({percent(us, step_us)})"


def spread(limits: tuple[float, float], step_us: float) -> str:
    """The limits of a projection: `951 µs to 3.28 ms`; `up to 571 µs` where the lower is less than can be measured."""
    low, high = limits
    if not measurable(high, step_us):
        return saving(high, step_us)
    return f"{duration(low)} to {duration(high)}" if measurable(low, step_us) else f"up to {duration(high)}"


def share(us: float, step: StepSummary) -> str:
    """A time and its part of the step: `253 ms (88 %)`."""
    return f"{duration(us)}{_part(us, step)}"


def _part(us: float, step: StepSummary) -> str:
    return f" ({percent(us, step.observed_us)})" if step.observed_us else ""


def sentences(*parts: str) -> str:
    """Parts as sentences, each with a full stop; empty ones are left out."""
    return " ".join(p if p.endswith((".", "!", "?")) else f"{p}." for p in parts if p)


def what(f: Finding) -> str:
    """The op and its innermost scope: `aten::nonzero in mask`."""
    op = f.where.op or f.api
    return f"{op} in {f.where.scope[-1]}" if f.where.scope else op


def line(source: Source) -> int:
    """The line to point at: the exact one, the only one that it can be, or the function's first."""
    return source.candidates[0] if not source.exact and len(source.candidates) == 1 else max(source.line, 1)


def place(source: Source | None) -> str:
    """The line as exactly as it is known: `train.py:42`, `train.py:42 or 44?`, `loss() in train.py`; empty without."""
    if source is None:
        return ""
    if source.exact:
        return f"{source.file}:{source.line}"
    if source.candidates:
        return f"{source.file}:{' or '.join(map(str, source.candidates))}?"
    return f"{source.function}() in {source.file}"


def places(where: Attribution) -> str:
    """The user's line and the library's: `train.py:42, inside timm/utils/agc.py:30`; empty without.

    A line that only starts a training loop comes last: `transformers/trainer.py:1847, from train.py:15`.
    """
    user, library = place(where.source), in_library(where)
    if not (user and library):
        return user or library
    return f"{library}, from {user}" if where.in_loop else f"{user}, inside {library}"


def whereabouts(f: Finding) -> str:
    """Where a finding is, as short as it can be told: line, scopes, op."""
    parts = (places(f.where), " › ".join(f.where.scope[-2:]), f.where.op)
    return " · ".join(part for part in parts if part)


def in_library(where: Attribution) -> str:
    """The library's line, from its package's root on: `transformers/trainer.py:1847`; empty where it's the user's."""
    source = where.in_library
    return place(replace(source, file=path_in_package(source.file))) if source else ""


USES = {
    Use.STEERS: "no: it steers the host (a branch, a shape, an index or an argument), and a fix has to keep that",
    Use.SHOWN: "yes, as far as the program goes: the value is only shown or stored",
    Use.NOTHING: "no value is read: what counts is that the order of work stays right",
    Use.UNKNOWN: "not known: neither the trace nor the source at hand tells what the value is used for",
}
"""Whether a wait is safe to remove, by what the host does with the value."""


def certainty(source: Source) -> str:
    """How the line is known."""
    if source.exact:
        return f"in {source.function}; recorded at the sync itself"
    if source.candidates:
        return f"in {source.function}; a guess: the calls in it that can be this op"
    return f"defined in line {source.line}; the trace doesn't tell the line itself"


def chain(f: Finding) -> tuple[str, ...]:
    """From the outermost op to the runtime call that waits."""
    return (*f.where.op_stack, f.api)


def facts(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    """What a finding costs and would gain, why it waits, what to do and when it is fine, each with its name."""
    return [
        ("measured", measured(f, step)),
        ("projected", projected(f, step)),
        ("why", f.diagnosis.why),
        ("fix", f.diagnosis.fix),
        ("safe to remove", USES[f.where.use]),
        ("fine", f.diagnosis.when_fine),
    ]


def measured(f: Finding, step: StepSummary) -> str:
    """Wait and bubble, how often."""
    if step.waits_withheld:
        return f"waits {times(f.per_step)}, nobody knows how long"
    return (
        f"waits {duration(f.wait_us)} a step{_part(f.wait_us, step)}, {times(f.per_step)}; "
        f"the device stands idle {duration(f.bubble_us)} behind it"
    )


def projected(f: Finding, step: StepSummary) -> str:
    """What removing it would gain, with its range and what would only move; empty where nothing was projected."""
    if f.gain is None:
        return ""
    us, whole = f.gain.recoverable_us, replayed(step)
    part = f"{percent(us, whole)}; " if measurable(us, whole) else ""
    often = " a step" if measurable(us, whole) else " of the step"
    saves = f"Removing it would save {saving(us, whole)}{often}"
    if measurable(f.gain.range_us[1], whole):
        saves += f" ({part}{spread(f.gain.range_us, whole)})"
    if f.gain.moved_us >= 0.01 * f.wait_us:
        saves += f"; {duration(f.gain.moved_us)} of the wait would move to the next sync"
    return sentences(saves, f.gain.untold) if f.gain.untold else saves
