"""The analysis pipeline: load → detect → attribute → cost → whatif → host → habits → Analysis."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from syncscan import cost, habits, load, whatif
from syncscan.attribute import OWN, SourceFiles, attribute, diagnosed_by_line, source_files, with_excerpts
from syncscan.attribute.races import races_met, with_protected
from syncscan.attribute.source_obstacles import in_source
from syncscan.detect import PREAMBLE, RuleDoc, catalogue, detect
from syncscan.errors import TraceEmpty, TraceTooLarge, UsageError
from syncscan.facts.chosen_process import apart
from syncscan.facts.integrity import integrity_of
from syncscan.host import host_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.program_run import run_of
from syncscan.model.slice_names import is_step
from syncscan.model.stage_clock import StageClock
from syncscan.model.step_marks import FoundBy
from syncscan.model.trace import CALLS, Category, Trace

Progress = Callable[[int, int], None]


def find(paths: Iterable[str]) -> list[str]:
    """Return the traces that these paths name: a file itself, a folder's traces, or `-` for standard input.

    Raises:
        TraceNotFound: a path that isn't there, or a folder without traces.
    """
    return [trace for path in paths for trace in load.find(path)]


def analyze(
    path: str | os.PathLike[str],
    *,
    step_ms: float | None = None,
    step_scope: str | None = None,
    steps: Literal["auto", "none"] | slice = "auto",
    progress: Progress | None = None,
    max_memory: int | None = None,
    process: str | None = None,
    source_roots: Sequence[str] = (),
    clock: StageClock | None = None,
) -> Analysis:
    """Find, name and cost the host-device syncs of a recorded trace, and project the step without them.

    Args:
        path: a trace as torch.profiler writes it, plain or compressed, local or anything that fsspec opens; or a saved
            analysis, which is analyzed again with its original options unless other options are given here.
        step_ms: the step's time without the profiler in ms, if you measured it and capture didn't.
        step_scope: glob; every range whose name it matches is a step. By default steps are the profiler's, else a
            serving framework's, else what repeats.
        steps: `none` takes the whole trace as one step; `slice(1, 3)` only the second and the third of those found.
        progress: called with (bytes read, total bytes) while the trace is read.
        max_memory: bytes that this may take, about; by default most of what is free.
        process: of a trace that holds several, as of merged ranks, the pid of the one to analyze; by default the one
            with the most steps.
        source_roots: folders that the program's sources may be read below, besides the working directory: each `DIR`,
            or `OLD=NEW` where the trace was recorded below OLD and its sources lie below NEW.
        clock: called at the end of each stage.

    Raises:
        UsageError: the trace holds no such process or no such steps, or a source root is no folder.
        TraceNotFound, TraceEmpty, TraceUnreadable: nothing can be read there, nothing was recorded, or another tool
            than torch.profiler wrote it.
        TraceTooLarge: it doesn't fit into memory.
        UsageError: no range is called `step_scope`, or there is to be none; or the recorded step can't take `step_ms`.
    """
    if step_ms is not None and not 0 < step_ms < math.inf:
        raise UsageError(f"step_ms is {step_ms}; it must be greater than 0.")
    if not (isinstance(steps, slice) and steps.step is None) and steps not in ("auto", "none"):
        raise UsageError(f"steps={steps!r} is neither 'auto' nor 'none' nor slice(A, B).")
    chosen = steps if isinstance(steps, slice) else None
    files, clock = source_files(source_roots), clock or StageClock()
    if step_scope is not None and steps == "none":
        raise UsageError("step_scope contradicts steps='none'.", "Leave one of them out.")
    try:
        trace = load.load(path, progress=progress, max_memory=max_memory, process=process or "")
        if another := load.refused(trace, os.fspath(path)):
            raise another
        if not len(trace.slices) and not trace.info.capture.pretended:
            raise _nothing_recorded(trace)
        if trace.info.stored:
            before = trace.info.stored.asked
            step_ms, process = step_ms or before.step_ms, process or before.process
            if step_scope is None:
                step_scope, steps = before.step_scope, "none" if steps == "none" else before.steps
            if chosen is None and before.chosen:
                chosen = slice(*before.chosen)
        if step_scope is not None or steps == "none":
            trace = load.with_steps(trace, step_scope, as_one_step=steps == "none")
        clock.over("load")
        return analyze_trace(trace, step_ms=step_ms, process=process, chosen=chosen, files=files, clock=clock)
    except MemoryError:
        raise TraceTooLarge(
            f"{os.fspath(path)} needs more memory than is available or allowed.", "Record fewer steps."
        ) from None


def _nothing_recorded(trace: Trace) -> TraceEmpty:
    sentences = " ".join(trace.info.warnings)
    return TraceEmpty(
        f"{trace.info.path} contains no slices: nothing was recorded, or everything was lost. {sentences}".rstrip(),
        "Record it again, with the profiler on while steps run.",
    )


@load.uncollected()
def analyze_trace(
    trace: Trace,
    *,
    step_ms: float | None = None,
    process: str | None = None,
    chosen: slice | None = None,
    files: SourceFiles = OWN,
    clock: StageClock | None = None,
) -> Analysis:
    """Run the stages after loading on a trace in memory."""
    unfiltered, over = trace, (clock or StageClock()).over
    trace, processes, lacks = apart(trace, process)
    if trace.steps_found.by is FoundBy.REPETITION and not trace.steps:
        trace = load.with_steps(trace)  # what repeats is searched for in one process
    if chosen is not None:
        trace = load.with_chosen_steps(trace, chosen.start, chosen.stop)
    points, broken_rules = detect(trace)
    over("detect")
    points = with_protected(trace, diagnosed_by_line(attribute(trace, points, files), files))
    over("attribute")
    integrity = integrity_of(trace, lacks)
    points = cost.measured(trace, points, integrity)
    measured = cost.step_summary(trace, points, integrity, processes)
    findings = cost.name_repeated_reads(trace, cost.merged_findings(points, measured))
    over("cost")
    unprofiled_us = step_ms * 1e3 if step_ms else measured.unprofiled_us
    projector = whatif.Projector(trace, findings, unprofiled_us, measured, integrity, in_source(trace, findings, files))
    doubt = projector.doubt(step_ms)
    step, findings, groups = whatif.project_gains(projector, measured)
    over("whatif")
    host_time = host_of(trace, step, findings)
    over("host")
    timed = not trace.info.capture.pretended
    habits_found, broken_habits = habits.find(trace, findings, step, host_time.sampled) if timed else ((), ())
    if not integrity.verdict:
        habits_found = tuple(h for h in habits_found if h.basis is None)  # costs of the others are unknown then
    habits_found = whatif.project_habits(projector, habits_found)
    over("habits")
    findings, habits_found, states, compiled, obstacles = whatif.together(projector, findings, habits_found)
    over("states")
    analysis = Analysis(
        trace=trace,
        step=step,
        findings=with_excerpts(trace, findings, files),
        groups=groups,
        habits=habits_found,
        remedies=whatif.remedies_of(projector, findings, groups, habits_found, states, compiled),
        states=states,
        obstacles=obstacles,
        host_time=host_time,
        races=races_met(trace.info.capture),
        run=run_of(trace.info.capture.run),
        integrity=integrity,
        whole=unfiltered if processes else None,
        warnings=(*trace.info.warnings, *missing(trace), *broken_rules, *broken_habits, *([doubt] if doubt else [])),
        projector=projector,
    )
    over("remedies")
    return analysis


def analyze_pretended(recording: bytes) -> Analysis:
    """Run the stages after loading on the recording of a dry run.

    Args:
        recording: what `dryrun` made, a trace's JSON.
    """
    analysis = analyze_trace(load.parse(recording, "dry run"))
    findings = cost.without_preparation(analysis.findings)
    return replace(analysis, findings=tuple(sorted(findings, key=_frequent)))


def _frequent(finding: Finding) -> tuple[bool, float]:
    return finding.severity is Severity.INFO, -finding.per_step


def missing(trace: Trace) -> tuple[str, ...]:
    """Return sentences on data that this trace is missing and what to do about it, and the notes of its capture."""
    present = {category for category in Category if trace.is_category(category).any()}
    if not present & {*CALLS, Category.SYNC} and not trace.info.capture.pretended:
        if not present & {Category.KERNEL, Category.MEMCPY}:
            return ("No device events: on a CPU, nothing waits. Record on the device, with its ProfilerActivity.",)
        return ("No runtime calls, so waits can't be seen. Record with ProfilerActivity.CUDA and without a filter.",)
    if trace.info.capture.pretended:  # missing data is why a dry run has no verdict
        return ()
    sentences = []
    if not len(trace.device_rows):
        sentences.append("Runtime calls but no device work: waits and idle time can't be measured. Record fewer steps.")
    if not trace.steps and not trace.steps_found.asked:
        sentences.append(
            "No steps: numbers are for the whole trace. Use a schedule and prof.step(), or --steps scope:GLOB."
        )
    sentences += trace.info.capture.notes
    if not _has_scopes(trace):
        sentences.append("No record_function scopes: findings are located by op and line only.")
    return tuple(sentences)


def _has_scopes(trace: Trace) -> bool:
    return not all(is_step(trace.strings[number]) for number in trace.names_of(Category.ANNOTATION))


def rules() -> tuple[RuleDoc, ...]:
    """Return the documentation of each rule that identifies syncs, in matching order."""
    return catalogue()


def habit_rules() -> tuple[RuleDoc, ...]:
    """Return the documentation of each rule that finds habits, in matching order."""
    return habits.catalogue()


def preamble_of(rule: RuleDoc) -> str:
    """Return the code that a rule's examples need."""
    return habits.PREAMBLE if rule.of_habit else PREAMBLE


def explanation(name: str, analysis: Analysis | None = None) -> str:
    """Return the documentation of a rule as Markdown; with an analysis, preceded by its measurements.

    Args:
        name: the name, as `rules.pages.named_page` takes it; with an analysis as `report.named.named` does.
        analysis: the analysis whose findings and habits can be named.

    Raises:
        UsageError: nothing is called that, or several things are.
    """
    from syncscan.report import evidence
    from syncscan.report.named import named
    from syncscan.rules.pages import markdown, named_page

    if analysis is not None:
        named_rules = dict.fromkeys(part.rule for part in named(analysis, name))
        return "\n".join([evidence.of_named(analysis, name), *map(explanation, named_rules)])
    doc = named_page(name, (*rules(), *habit_rules()))
    return markdown(doc, preamble_of(doc))


def rule_ids() -> tuple[str, ...]:
    """Return the ids of all rules: those for syncs, then those for habits."""
    return tuple(rule.id for rule in (*rules(), *habit_rules()))


__all__ = [
    "RuleDoc",
    "analyze",
    "analyze_pretended",
    "analyze_trace",
    "explanation",
    "find",
    "habit_rules",
    "missing",
    "preamble_of",
    "rule_ids",
    "rules",
]
