"""Phrases that the reports share, on findings and steps: what waits, where, how long, and what removal gains.

Names in the phrases are as recorded: each renderer escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from msgspec.structs import replace

from syncscan.facts.period import earlier_work, later_work, left_out_before, step_intervals, window
from syncscan.facts.profiler_work import profilers_own_within
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Attribution, Finding, Phase, Replacement, Source, Use
from syncscan.model.habit import Basis
from syncscan.model.libraries import path_in_package
from syncscan.model.step import REPEATABILITY, StepSummary
from syncscan.model.step_marks import FoundBy
from syncscan.model.trace import NONE, Trace
from syncscan.report.units import duration, percent, range_of, times, within

PROFILERS = 0.01
"""The profiler's own rows are mentioned if they take more than this fraction of the steps."""
ACROSS = 0.05
"""Work that crosses the steps' begin or end is mentioned if the two differ by more than this fraction of a step, and
time in the loader before the first step if it exceeds it. Equal work at both ends is the queue of a host that runs
ahead, and takes nothing from the step time."""

UNTIMED = "waits for an unknown time"
"""Cost of a sync whose waits can't be measured."""
COMPILED_TIMES, COMPILED_LEAST_US = 2.0, 20.0
"""A gain once the network is compiled is said where the step isn't known if it is so many times the gain now, or so
many times as long."""


def real(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that aren't intended waits: those above `info`."""
    return [f for f in findings if not f.intended]


def steps_found(analysis: Analysis) -> str:
    """Return how the steps were found, and how much device work crosses their begin and end."""
    return " ".join((_how_found(analysis.trace), *_profilers(analysis), *_across(analysis)))


def _how_found(trace: Trace) -> str:
    steps = trace.steps_found
    if steps.chosen is None:
        return _all_found(trace, len(trace.steps))
    begin, end = steps.chosen
    whole = _all_found(trace, steps.count)[:-1]
    return f"{whole}; steps {begin}:{end} (counted from 0) were analyzed, as requested."


def _all_found(trace: Trace, count: int) -> str:
    steps, counted = trace.steps_found, f"{count} step{'s' * (count != 1)} found"
    if steps.by is FoundBy.PROFILER:
        return f"{counted} (ProfilerStep markers)."
    if steps.by is FoundBy.SCOPE:
        return f"{counted} (ranges named {steps.name})."
    if steps.by is FoundBy.FRAMEWORK:
        return f"{counted} (ranges named as {steps.name} names its steps)."
    if steps.by is FoundBy.REPETITION:
        calls = f"{steps.calls} call{'s' * (steps.calls != 1)}"
        return f"No step markers: the shortest repeating sequence ({calls}) counts as a step, {count} times."
    if steps.asked:
        return "The whole trace counts as one step, as requested."
    whole = f"everything from {_first(trace)} to the last completion" if len(trace.device_rows) else "the whole trace"
    return f"No step markers and no repeating sequence found: {whole} counts as one step."


def _profilers(analysis: Analysis) -> Iterator[str]:
    """Yield in how many steps the profiler itself blocked the host, and for how long, where that matters."""
    profiler_us = profilers_own_within(analysis.trace, step_intervals(analysis.trace))
    us, blocked = sum(profiler_us) / 1e3, sum(ns > 0 for ns in profiler_us)
    if profiler_us and us > PROFILERS * analysis.step.observed_us * len(profiler_us):
        suffix = (
            "in it" if len(profiler_us) == 1 else f"in {blocked} of them" if blocked < len(profiler_us) else "in them"
        )
        yield f"Profiler overhead {suffix} ({duration(us)}, rows of category overhead) is excluded from all times."


def _first(trace: Trace) -> str:
    calls = trace.device_calls[trace.device_calls != NONE]
    loads = len(calls) and window(trace).begin < trace.slices.ts[calls].min()
    return "the loader before the first launch" if loads else "the first launch"


def _across(analysis: Analysis) -> Iterator[str]:
    """Yield how much device work crosses the begin of the first step and the end of the last, where it matters."""
    ends = earlier_work(analysis.trace), later_work(analysis.trace)
    earlier, later = (interval.length / 1e3 if interval else 0.0 for interval in ends)
    if abs(earlier - later) <= ACROSS * analysis.step.observed_us:
        return
    if earlier:
        backlog = f"the device has a backlog of {duration(earlier)}"
        yield f"When the first step begins, {backlog}, which counts neither as work of the steps nor as idle time."
    held = sum(end - begin for _, begin, end in left_out_before(analysis.trace)) / 1e3
    if held > ACROSS * analysis.step.observed_us:
        yield f"The host waits once for {duration(held)} for work launched before the first step."
    if later and analysis.trace.steps:
        yield f"After the last step, the device needs {duration(later)} more to finish the work of the steps."
    elif later:
        yield f"When the host is done, the device is busy for {duration(later)} more."


def lacking(analysis: Analysis) -> list[str]:
    """Return the sentences on missing data and withheld numbers, except those in the verdict's reason."""
    return [s for s in analysis.integrity.sentences() if s not in analysis.step.reason]


def waited(us: float | None) -> str:
    """Return a measured wait or idle time; a dash where the trace can't tell."""
    return "–" if us is None else duration(us)


def replayed(step: StepSummary) -> float:
    """Return the step time that projections start from, in µs: without the profiler where known."""
    return step.unprofiled_us or step.observed_us


def measurable(us: float, step_us: float) -> bool:
    """Return whether two measurements of a step could tell a saving from none."""
    return us >= REPEATABILITY * step_us and us > 0.0


def saving(us: float, step_us: float, limits: tuple[float, float] | None = None) -> str:
    """Return a saving: `430 µs`, or `less than 1%` where none can be measured; a wide range leaves it two digits."""
    return within(us, limits) if measurable(us, step_us) else f"less than {REPEATABILITY:.0%}"


def gains(f: Finding, step_us: float) -> str:
    """Return what a sync's fix gains: `removing it gains 4.3 ms (27%)`, or `nothing`; empty if not projected.

    `the fix gains` where that takes along more than the wait.
    """
    us = f.recoverable_us
    if us is None or not step_us:
        return ""
    known = measurable(us, step_us)
    how = "removing it" if f.replacement is Replacement.UNKNOWN else "the fix"
    return f"{how} gains {figure(us, Basis.REPLAY, step_us, f.recoverable_range_us) if known else 'nothing'}"


def figure(us: float, basis: Basis, step_us: float, limits: tuple[float, float] | None) -> str:
    """Return a saving and its share of the step: `430 µs (9%)`, or `at most 432 µs (9%)` for an upper bound."""
    if not measurable(us, step_us):
        return saving(us, step_us)
    if basis is Basis.UPPER_BOUND:
        return f"at most {duration(us)} ({percent(us, step_us)})"
    return f"{within(us, limits)} ({percent(us, step_us)})"


def spread(limits: tuple[float, float], step_us: float) -> str:
    """Return the range of a projection: `0.9 to 3.3 ms`; `0 to 570 µs` where the lower end isn't measurable."""
    low, high = limits
    if not measurable(high, step_us):
        return saving(high, step_us)
    return range_of(limits) if measurable(low, step_us) else f"0 to {within(high, limits)}"


def share(us: float, step: StepSummary) -> str:
    """Return a time and its share of the step: `253 ms (88 %)`."""
    return f"{duration(us)}{_part(us, step)}"


def _part(us: float, step: StepSummary) -> str:
    return f" ({percent(us, step.observed_us)})" if step.observed_us else ""


def sentences(*parts: str) -> str:
    """Return parts as sentences, each with a full stop; empty ones are left out."""
    return " ".join(p if p.endswith((".", "!", "?")) else f"{p}." for p in parts if p)


def what(f: Finding) -> str:
    """Return the op and its innermost scope: `aten::nonzero in mask`."""
    op = f.op or f.call
    return f"{op} in {f.scope[-1]}" if f.scope else op


def line(source: Source) -> int:
    """Return the line to point at: the exact one, the only candidate, or the function's first."""
    return source.candidates[0] if not source.exact and len(source.candidates) == 1 else max(source.line, 1)


def place(source: Source | None) -> str:
    """Return the line as far as known: `train.py:42`, `train.py:42 or 44?`, `loss() in train.py`, or nothing."""
    if source is None:
        return ""
    if source.exact:
        return f"{source.file}:{source.line}"
    if source.candidates:
        return f"{source.file}:{' or '.join(map(str, source.candidates))}?"
    return f"{source.function}() in {source.file}"


def places(f: Finding) -> str:
    """Return the user's line and the library's: `train.py:42, inside timm/utils/agc.py:30`; empty without both.

    A line that only starts a training loop comes last: `transformers/trainer.py:1847, from train.py:15`.
    """
    user, library = place(f.source), in_library(f)
    if not (user and library):
        return user or library
    return f"{library}, from {user}" if f.in_loop else f"{user}, inside {library}"


def whereabouts(f: Finding) -> str:
    parts = (places(f), " › ".join(f.scope[-2:]), f.op)
    return " · ".join(part for part in parts if part)


def in_library(where: Finding | Attribution) -> str:
    """Return the library's line relative to its package: `transformers/trainer.py:1847`; empty for the user's own."""
    source = where.in_library
    return place(replace(source, file=path_in_package(source.file))) if source else ""


USES = {
    Use.STEERS: "no: the host uses it for a branch, a shape, an index or an argument, so a fix has to preserve that",
    Use.SHOWN: "yes: the value is only logged or stored",
    Use.NOTHING: "yes, if ordering is preserved (no value is read)",
    Use.UNKNOWN: "unknown: neither the trace nor the source shows how the value is used",
}
"""Whether a wait is safe to remove, by what the host does with the value."""


def phase_of(f: Finding) -> str:
    """Return the part of the training step that a finding is in, as `forward, `; empty without one."""
    return "" if f.phase is Phase.OTHER else f"{f.phase.value}, "


def certainty(source: Source) -> str:
    if source.exact:
        return f"in {source.function}; recorded at the sync itself"
    if source.candidates:
        return f"in {source.function}; candidates: calls in it that match this op"
    return f"defined in line {source.line}; the trace doesn't record the exact line"


def chain(f: Finding) -> tuple[str, ...]:
    """Return the ops from the outermost one to the runtime call that waits."""
    return (*f.op_stack, f.call)


def facts(f: Finding, step: StepSummary) -> list[tuple[str, str]]:
    return [
        ("measured", measured(f, step)),
        ("projected", projected(f, step)),
        ("why", f.why),
        ("fix", f.fix),
        ("safe to remove", USES[f.value]),
        ("fine", f.when_fine),
    ]


def worth_more_compiled(compiled_us: float | None, now_us: float) -> TypeGuard[float]:
    """Return whether removing a sync saves enough more in a compiled network to be mentioned."""
    return compiled_us is not None and compiled_us > COMPILED_TIMES * max(now_us, COMPILED_LEAST_US)


def once_compiled(f: Finding, step: StepSummary) -> str:
    """Return the saving in a compiled step, as `28.0 ms (89%) once compiled`; empty unless it is larger than now."""
    us, replayed_us = f.once_compiled_us, replayed(step)
    if us is None or not measurable(us - (f.recoverable_us or 0.0), replayed_us):
        return ""
    then = "if the network is compiled (reduce-overhead) and all other syncs are removed"
    return f"{duration(us)} ({percent(us, replayed_us)}) {then}"


def waiting_time(f: Finding) -> str:
    """Return how long a finding waits per step, as `waits 3.84 ms`."""
    return UNTIMED if f.wait_us is None else f"waits {duration(f.wait_us)}"


def measured(f: Finding, step: StepSummary) -> str:
    if f.wait_us is None:
        return f"waits {times(f.per_step)}, for an unknown time"
    return (
        f"waits {duration(f.wait_us)} per step{_part(f.wait_us, step)}, {times(f.per_step)}; "
        f"the device is then idle for {duration(f.idle_us)}"
    )


def projected(f: Finding, step: StepSummary) -> str:
    """Return the gain of removing a finding, with its range and what would move; empty without a projection."""
    us, limits, replayed_us = f.recoverable_us, f.recoverable_range_us, replayed(step)
    if us is None or limits is None:
        return ""
    part = f"{percent(us, replayed_us)}; " if measurable(us, replayed_us) else ""
    often = " per step" if measurable(us, replayed_us) else " of the step"
    how = "Removing it" if f.replacement is Replacement.UNKNOWN else "The fix"
    saves = f"{how} would save {saving(us, replayed_us, limits)}{often}"
    if measurable(limits[1], replayed_us):
        saves += f" ({part}{spread(limits, replayed_us)})"
    if f.moved_us is not None and f.moved_us >= 0.01 * f.waited_us:
        saves += f"; {duration(f.moved_us)} of the wait would move to the next sync"
    if once := once_compiled(f, step):
        saves += f"; {once}"
    return sentences(saves, f.untold) if f.untold else saves
