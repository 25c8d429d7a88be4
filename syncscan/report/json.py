"""Render an Analysis as the JSON that other programs rely on (schema `syncscan.analysis/2`)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct
from msgspec.structs import asdict

from syncscan.facts.kernel_shares import KernelShare
from syncscan.facts.period import PhaseSummary, earlier_work, later_work, phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Confidence, Finding
from syncscan.model.habit import Basis, HabitFacts
from syncscan.model.host import UNKNOWN_HOST, CountedHost, Host, HostShare, SampledHost
from syncscan.model.json_text import Document, Range, about, indented, written
from syncscan.model.program_run import ProgramRun, RunPhase
from syncscan.model.projection import Remedy, RemovalGroup
from syncscan.model.race import Race
from syncscan.model.saved import Saved
from syncscan.model.states import ObstacleKind, States
from syncscan.model.step import Bound, DeviceTime, RunAhead, ShareBasis
from syncscan.model.step_marks import FoundBy
from syncscan.model.trace import Category, Trace, Vendor
from syncscan.model.view import Hidden
from syncscan.report import kernels, phrases
from syncscan.report.compile_breaks import CompileDocument, compile_document
from syncscan.report.front import front_of
from syncscan.report.program_run import analyses_of, gain_share, sentence, verdict_of
from syncscan.report.remedies import RemedyText, describe
from syncscan.version import __version__

SCHEMA = "syncscan.analysis/2"


class SampledDocument(SampledHost, frozen=True, kw_only=True):
    """Host time by function, without the profiler; summed up by phase and by owner."""

    phases: tuple[HostShare, ...]
    owners: tuple[HostShare, ...]


class HostDocument(Struct, frozen=True):
    """Where the host's time goes."""

    sampled: SampledDocument | None
    counted: CountedHost | None


class Has(Struct, frozen=True):
    """Kinds of events that a trace contains."""

    steps: Annotated[bool, about("step markers, or ranges that count as steps")]
    stacks: Annotated[bool, about("Python frames")]
    shapes: Annotated[bool, about("shapes of ops' arguments")]
    sync_events: Annotated[bool, about("CUPTI's synchronization rows")]
    exact_lines: Annotated[bool, about("source lines recorded by capture at the syncs")]


class StepsFoundDocument(Struct, frozen=True):
    """How the steps were found."""

    by: FoundBy
    name: Annotated[str | None, about("name of the ranges that are steps")]
    calls: Annotated[int | None, about("launches and synchronizations of the sequence that repeats")]
    sentence: Annotated[str, about("the sentence shown in every report")]
    earlier_work_us: Annotated[float, about("the device's backlog when the first step begins")]
    later_work_us: Annotated[float, about("how long the device is busy after the host is done")]


class TraceDocument(Struct, frozen=True):
    """The trace that was read, and the data it is missing."""

    path: Annotated[str, about("as given")]
    size_bytes: int
    events: int
    vendor: Vendor
    devices: tuple[str, ...]
    rank: Annotated[int | None, about("of a distributed job")]
    world_size: int | None
    has: Has
    integrity: Annotated[tuple[str, ...], about("missing data, and the numbers withheld because of it")]
    steps_found: StepsFoundDocument
    phases: Annotated[tuple[PhaseSummary, ...], about("of served steps")]
    warnings: tuple[str, ...]


class StepDocument(Struct, frozen=True):
    """A step: measurements, the gain without its syncs, and the report's sentences."""

    count: Annotated[int, about("steps analyzed")]
    observed_us: Annotated[float | None, about("steady-state time between steps completed on host and device")]
    host_us: Annotated[float | None, about("duration of a step on its thread")]
    wait_us: Annotated[float | None, about("how long syncs block the host")]
    device_busy_us: Annotated[float | None, about("busiest device, without exposed collectives")]
    device_idle_us: Annotated[float | None, about("neither busy nor communicating")]
    bubble_us: Annotated[float | None, about("idle after syncs")]
    input_us: Annotated[float | None, about("in a loader")]
    communication_us: float | None
    run_ahead: Annotated[RunAhead | None, about("how far the host is ahead of the device, in the recording")]
    devices: tuple[DeviceTime, ...]
    processes: Annotated[tuple[str, ...], about("pids of a file that has several; the first is analyzed")]
    device_share: Annotated[float | None, about("fraction of the unprofiled step in which the device is busy")]
    device_share_basis: Annotated[
        ShareBasis | None, about("basis of device_share; recorded: from the trace, with the profiler")
    ]
    recorded_device_share: Annotated[
        float | None, about("fraction of the step in the trace in which the device is busy")
    ]
    communication_share: float | None
    guessed_overhead: Annotated[float | None, about("estimated fraction of host time that is profiler overhead")]
    unprofiled_us: Annotated[float | None, about("the step's time without the profiler")]
    bound: Bound
    reason: Annotated[str, about("the numbers behind the verdict, as a sentence")]
    recoverable_us: Annotated[float | None, about("projected: how much shorter without all syncs")]
    recoverable_range_us: Range | None
    verdict: str
    summary: str
    advice: tuple[str, ...]


class ObstacleDocument(Struct, frozen=True):
    """Something that keeps the network from being compiled, or from being held by CUDA graphs."""

    kind: ObstacleKind
    prevents: Annotated[tuple[str, ...], about("ways to launch; empty if that depends on unrecorded facts")]
    seen: Annotated[int, about("ops, kernels, syncs or backward passes per step that show it")]
    of: Annotated[int, about("out of so many; 0 if meaningless")]
    clause: str


class GapDocument(Struct, frozen=True):
    """Code for which a dry run doesn't know whether it waits."""

    what: str
    count: int
    file: str
    line: int


class DryRunDocument(Struct, frozen=True):
    """Facts on a dry run besides its findings."""

    ops: Annotated[int | None, about("ops on the simulated device")]
    not_understood: tuple[GapDocument, ...]
    notes: tuple[str, ...]


class RemedyDocument(Struct, frozen=True):
    """A change to make: syncs to remove together, or a habit to drop."""

    findings: Annotated[tuple[str, ...], about("ids of the syncs to remove together")]
    habit: Annotated[str | None, about("id of the habit, if it is one")]
    launches: Annotated[str | None, about("how the step launches, if the remedy changes that too")]
    what: str
    where: str
    fix: str
    alone_us: Annotated[float, about("individual saving")]
    range_us: Range
    after_us: Annotated[float | None, about("gain after all entries above; None for an upper bound")]
    basis: Basis
    confidence: Confidence


class RunPhaseDocument(RunPhase, frozen=True, kw_only=True):
    """A phase, of a dry run with what would wait in it."""

    verdict: Annotated[str, about("empty for a recording")]
    findings: tuple[Finding, ...]


class RunDocument(ProgramRun, frozen=True, kw_only=True):
    """The program's whole run, as far as a capture watched it or a dry run ran it."""

    sentence: str
    gain_share: Annotated[float | None, about("of the run's time, for all that is recorded")]
    phases: tuple[RunPhaseDocument, ...]


class AnalysisDocument(Document, frozen=True):
    """The whole analysis of one trace."""

    trace: TraceDocument
    step: StepDocument
    dry_run: Annotated[DryRunDocument | None, about("None for a recording")]
    compiled: Annotated[CompileDocument | None, about("None without --explain-compile")]
    findings: Annotated[tuple[Finding, ...], about("sorted by saving, then by wait")]
    races: Annotated[tuple[Race, ...], about("races found by a dry run: unordered uses of the same memory")]
    groups: tuple[RemovalGroup, ...]
    habits: tuple[HabitFacts, ...]
    host: HostDocument | None
    run: Annotated[RunDocument | None, about("None unless capture watched the run")]
    kernels: Annotated[tuple[KernelShare, ...], about("at most five, the longest first")]
    remedies: Annotated[tuple[RemedyDocument, ...], about("changes to make, in order")]
    obstacles: Annotated[tuple[ObstacleDocument, ...], about("in the way of a compile or CUDA graphs")]
    states: Annotated[States | None, about("None if launches don't limit the step")]
    hidden: tuple[Hidden, ...]


class SavedDocument(AnalysisDocument, frozen=True):
    """An analysis with the data to query it further; `report.saved` writes its last key."""

    saved: Saved


def render(analysis: Analysis) -> str:
    return indented(document(analysis))


def document(analysis: Analysis) -> AnalysisDocument:
    shown = analysis.shown
    listed = {f.id for f in shown.findings} | {h.id for h in shown.habits}
    remedies = (
        (analysis.remedies[entry.number - 1], entry)
        for entry in (describe(analysis) if analysis.remedies else ())
        if entry.habit in listed or any(m.id in listed for m in entry.members)
    )
    return AnalysisDocument(
        schema=SCHEMA,
        syncscan=__version__,
        trace=_trace(analysis),
        step=_step(analysis),
        dry_run=_dry_run(analysis),
        compiled=compile_document(analysis),
        findings=tuple(f.without_evidence for f in shown.findings),
        races=analysis.races,
        groups=analysis.groups,
        habits=tuple(written(HabitFacts, h) for h in shown.habits),
        host=_host(analysis.host_time),
        run=_run(analysis),
        kernels=kernels.shares(analysis),
        remedies=tuple(_remedy(remedy, entry) for remedy, entry in remedies),
        obstacles=tuple(written(ObstacleDocument, obstacle) for obstacle in analysis.obstacles),
        states=analysis.states,
        hidden=shown.hidden,
    )


def _host(host: Host) -> HostDocument | None:
    if host == UNKNOWN_HOST:
        return None
    return HostDocument(_sampled(host.sampled) if host.sampled else None, host.counted)


def _sampled(sampled: SampledHost) -> SampledDocument:
    return SampledDocument(**asdict(sampled), phases=sampled.by_phase(), owners=sampled.by_owner())


def _trace(analysis: Analysis) -> TraceDocument:
    t = analysis.trace
    return written(
        TraceDocument,
        t.info,
        has=_has(t),
        integrity=analysis.integrity.sentences(),
        steps_found=_steps_found(analysis),
        phases=phases_of(t),
        warnings=analysis.warnings,
    )


def _steps_found(analysis: Analysis) -> StepsFoundDocument:
    steps, earlier, later = analysis.trace.steps_found, earlier_work(analysis.trace), later_work(analysis.trace)
    return StepsFoundDocument(
        by=steps.by,
        name=steps.name or None,
        calls=steps.calls or None,
        sentence=phrases.steps_found(analysis),
        earlier_work_us=earlier.length / 1e3 if earlier else 0.0,
        later_work_us=later.length / 1e3 if later else 0.0,
    )


def _has(t: Trace) -> Has:
    return Has(
        steps=bool(t.steps),
        stacks=bool(len(t.frames)) or t.info.with_stack,
        shapes=t.info.record_shapes,
        sync_events=bool((t.slices.category == Category.SYNC).any()),
        exact_lines=bool(t.info.capture.lines.syncs),
    )


def _step(analysis: Analysis) -> StepDocument:
    front = front_of(analysis)
    sentences = {"verdict": front.verdict, "summary": front.together, "advice": front.advice}
    unknown = dict.fromkeys(_TIMED if analysis.trace.info.capture.pretended else ())
    return written(StepDocument, analysis.step, **sentences, **unknown)


_TIMED = (
    *("observed_us", "host_us", "wait_us", "device_busy_us", "device_idle_us", "bubble_us"),
    *("input_us", "communication_us", "recorded_device_share"),
)
"""Figures that a dry run doesn't have."""


def _dry_run(analysis: Analysis) -> DryRunDocument | None:
    capture = analysis.trace.info.capture
    if not capture.pretended:
        return None
    coverage = capture.coverage
    gaps = coverage.gaps if coverage else ()
    return DryRunDocument(
        ops=coverage.ops if coverage else None,
        not_understood=tuple(written(GapDocument, gap) for gap in gaps),
        notes=capture.notes,
    )


def _remedy(r: Remedy, text: RemedyText) -> RemedyDocument:
    unset = {"habit": r.habit or None, "launches": r.launches or None}
    return written(RemedyDocument, r, **unset, where=text.where, fix=text.fix)


def _run(analysis: Analysis) -> RunDocument | None:
    run = analysis.run
    if run is None:
        return None
    phases = tuple(_phase(phase, of) for phase, of in zip(run.phases, analyses_of(analysis), strict=True))
    whole = {**asdict(run), "phases": phases}
    return RunDocument(**whole, sentence=sentence(analysis), gain_share=gain_share(analysis))


def _phase(phase: RunPhase, of: Analysis | None) -> RunPhaseDocument:
    return RunPhaseDocument(
        **asdict(phase),
        verdict=verdict_of(phase, of) if phase.share is None else "",
        findings=() if of is None else tuple(f.without_evidence for f in of.findings),
    )
