"""What `--format json` writes, as types: renderers return them, and the files in `syncscan/schemas` are made of them.

Times are µs, means of a step unless a name says otherwise; what a trace can't tell is None. tests/schemas.py writes the
files (`pytest tests/report/test_schemas.py --update-golden`) and knows the version of each.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from syncscan.model.capture import (
    Clocks,
    Collection,
    Disturbed,
    EventCall,
    Frame,
    HostFrame,
    HostSample,
    OtherThread,
    RecordedPhase,
    RunLoop,
    RunPhase,
    RunSpan,
    SyncRecord,
    ThreadUse,
    TimedCall,
    WarnedSync,
)
from syncscan.model.check import By
from syncscan.model.diff import Change, Kept
from syncscan.model.finding import Cause, Confidence, Phase, Severity, Use
from syncscan.model.habit import Area, Basis
from syncscan.model.proof import Same, Verdict
from syncscan.model.saved import Saved
from syncscan.model.step import Bound
from syncscan.model.step_marks import ServingPhase
from syncscan.model.steps_found import FoundBy
from syncscan.model.timing import Clock
from syncscan.model.trace import Vendor


def _of(values: type[Enum]) -> Meta:
    return Meta(extra_json_schema={"enum": [member.value for member in values]})


def _said(what: str) -> Meta:
    return Meta(description=what)


BoundName = Annotated[str, _of(Bound)]
ConfidenceName = Annotated[str, _of(Confidence)]
PhaseName = Annotated[str, _of(Phase)]
SeverityName = Annotated[str, _of(Severity)]
BasisName = Annotated[str, _of(Basis)]
Range = Annotated[list[float], Meta(min_length=2, max_length=2)]
"""The lower and the upper end."""


class Has(TypedDict):
    """What of a trace's kinds of events it has."""

    steps: Annotated[bool, _said("marks, or ranges that count as steps")]
    stacks: Annotated[bool, _said("Python frames")]
    shapes: Annotated[bool, _said("shapes of ops' arguments")]
    sync_events: Annotated[bool, _said("CUPTI's synchronisation rows")]
    exact_lines: Annotated[bool, _said("lines that capture stored at the syncs")]


class StepsFound(TypedDict):
    """How the steps were found."""

    by: Annotated[str, _of(FoundBy)]
    name: Annotated[str | None, _said("of the ranges that are steps")]
    calls: Annotated[int | None, _said("launches and synchronises of the sequence that repeats")]
    sentence: Annotated[str, _said("the same as every report says it")]
    earlier_work_us: Annotated[float, _said("how long the device works on what was launched before the first step")]
    later_work_us: Annotated[float, _said("how long it goes on when the host is done")]


class ServedPhase(TypedDict):
    """Served steps of one phase and batch."""

    phase: Annotated[str, _of(ServingPhase)]
    batch: int | None
    count: int
    median_us: float


class TraceDocument(TypedDict):
    """What was read, what it has, what it lacks."""

    path: Annotated[str, _said("as it was given")]
    size_bytes: int
    events: int
    vendor: Annotated[str, _of(Vendor)]
    devices: list[str]
    rank: Annotated[int | None, _said("of a distributed job")]
    world_size: int | None
    has: Has
    integrity: Annotated[list[str], _said("what the trace lacks, and which numbers are withheld for it")]
    steps_found: StepsFound
    phases: Annotated[list[ServedPhase], _said("of served steps")]
    warnings: list[str]


class DeviceDocument(TypedDict):
    """One device's time in a step."""

    device: int
    busy_us: Annotated[float, _said("at work, exposed collectives left out")]
    communication_us: Annotated[float, _said("in collectives with nothing computed beside them")]


class ProcessDocument(TypedDict):
    """A process of the file, and its step."""

    process: Annotated[str, _said("its pid")]
    count: int
    observed_us: float
    devices: list[DeviceDocument]


class MeasuredStep(TypedDict):
    """A step: measured, and what its syncs' removal gains."""

    count: Annotated[int, _said("steps analysed")]
    observed_us: Annotated[float | None, _said("throughput: host and device both done")]
    host_us: Annotated[float | None, _said("how long a step lasts on its thread")]
    wait_us: Annotated[float | None, _said("how long its host is held by syncs")]
    device_busy_us: Annotated[float | None, _said("of the busiest device, exposed collectives left out")]
    device_idle_us: Annotated[float | None, _said("when it neither works nor communicates")]
    bubble_us: Annotated[float | None, _said("idle behind syncs")]
    input_us: Annotated[float | None, _said("in a loader")]
    communication_us: float | None
    devices: list[DeviceDocument]
    processes: Annotated[list[ProcessDocument], _said("of a file of several; the first is analysed")]
    device_share: Annotated[float | None, _said("the part of the unprofiled step that the device works")]
    communication_share: float | None
    guessed_overhead: Annotated[float | None, _said("the part of the host that is guessed to be the profiler's")]
    unprofiled_us: Annotated[float | None, _said("the step's time without the profiler")]
    bound: BoundName
    reason: Annotated[str, _said("the numbers that the verdict rests on, in a sentence")]
    recoverable_us: Annotated[float | None, _said("projected: how much shorter without all syncs")]
    recoverable_range_us: Range | None


class StepDocument(MeasuredStep):
    """The same with what is said of it."""

    verdict: str
    summary: str
    advice: list[str]


class Place(TypedDict):
    """A line of Python."""

    file: str
    line: int
    function: str
    exact: Annotated[bool, _said("whether it is the line that waited, or the function's")]


class GuessedPlace(Place, total=False):
    """The same; where the line isn't exact with the lines that it can be."""

    candidates: list[int]


class FindingDocument(TypedDict):
    """All sync points of one rule, scope, op and source."""

    id: Annotated[str, _said("the same in every run of the same code")]
    rule: Annotated[str, _said("its id")]
    name: Annotated[str, _said("the rule's")]
    cause: Annotated[str, _of(Cause)]
    severity: SeverityName
    confidence: ConfidenceName
    op: Annotated[str, _said("the outermost")]
    op_stack: Annotated[list[str], _said("outermost first")]
    call: Annotated[str, _said("the runtime call that waits")]
    scope: Annotated[list[str], _said("outermost first, without the steps' marks")]
    module: Annotated[list[str], _said("nn.Modules, outermost first")]
    source: Annotated[GuessedPlace | None, _said("the user's line")]
    called_from: Annotated[GuessedPlace | None, _said("the library's line that waited inside it")]
    in_loop: bool
    owner: Annotated[str, _said("user, a framework, or unknown")]
    phase: PhaseName
    thread: str
    count: Annotated[int, _said("sync points in the trace")]
    per_step: Annotated[float, _said("sync points a step")]
    wait_us: Annotated[float | None, _said("measured: how long the host was held")]
    bubble_us: Annotated[float | None, _said("measured: how long the device then stood idle")]
    moved_us: Annotated[float | None, _said("projected: what would turn up at the next sync")]
    recoverable_us: Annotated[float | None, _said("projected: how much shorter the step would be")]
    recoverable_range_us: Range | None
    untold: Annotated[str, _said("why the gain isn't told; empty where it is")]
    value: Annotated[str, _of(Use), _said("what the host does with the value: whether it is safe to remove")]
    title: str
    why: str
    fix: str
    when_fine: str


class CopiedBytes(TypedDict):
    """Of the copies of one place, in the dry run and in the recording."""

    here: float
    there: float


class CounterpartDocument(TypedDict):
    """What a recording has at the place of a dry run's finding."""

    findings: Annotated[list[str], _said("the recording's ids")]
    shared_with: Annotated[list[str], _said("ids of the dry run's other findings that have the same ones")]
    per_step: float
    wait_us: float | None
    bubble_us: float | None
    recoverable_us: float | None
    recoverable_range_us: Range | None
    copied_bytes: CopiedBytes | None


class ListedFinding(FindingDocument, total=False):
    """A finding; of a dry run beside a recording (`--like`) with what it costs there."""

    like: CounterpartDocument | None


class GapDocument(TypedDict):
    """What a dry run ran, or left out, without knowing whether it waits."""

    what: str
    count: int
    file: str
    line: int


class UnseenDocument(TypedDict):
    """A finding that only the recording has."""

    id: str
    where: str
    wait_us: float
    recoverable_us: float | None


class LikenessDocument(TypedDict):
    """The recording that a dry run is set beside."""

    path: str
    device: str | None
    steps: int
    step_us: float | None
    recoverable_us: float | None
    recoverable_range_us: Range | None
    sizes: Annotated[str, _said("whether both are of one size, in a sentence")]
    same_sizes: bool | None
    unseen: list[UnseenDocument]


class DryRunDocument(TypedDict):
    """What is said of a dry run besides its findings."""

    ops: Annotated[int | None, _said("on the pretended device")]
    not_understood: list[GapDocument]
    notes: list[str]
    like: LikenessDocument | None


class GroupDocument(TypedDict):
    """Findings worth removing together, on top of the groups before it."""

    ids: Annotated[list[str], _said("of findings")]
    saving_us: Annotated[float, _said("beside what the groups before save")]
    alone_us: Annotated[float, _said("the most that any one of them saves alone")]
    after_us: Annotated[float, _said("the step without this group and those before it")]


class OverlapDocument(TypedDict):
    """How much two streams of a device overlapped, as recorded."""

    device: int
    streams: list[int]
    work_us: list[float]
    shared_us: float


class SegmentDocument(TypedDict):
    """Launches that one graph can hold."""

    phase: PhaseName
    launches: float
    host_us: Annotated[float, _said("from the first to the end of the last")]
    ended_by: Annotated[str, _said("what stands behind it; empty where the next phase or the end does")]
    recoverable_us: float | None
    recoverable_range_us: Range | None


class SplitDocument(TypedDict):
    """What stands in the way of one graph."""

    what: str
    file: str | None
    line: int | None
    finding: Annotated[str | None, _said("the id of the sync that it is")]
    per_step: float
    us: float


class HabitDocument(TypedDict):
    """What costs a step time besides its syncs."""

    id: str
    rule: str
    area: Annotated[str, _of(Area)]
    severity: SeverityName
    confidence: ConfidenceName
    scope: list[str]
    op: str
    per_step: float
    evidence: Annotated[list[str], _said("the numbers that prove it")]
    segments: Annotated[list[SegmentDocument], _said("launches that graphs can hold")]
    splits: Annotated[list[SplitDocument], _said("what stands between them")]
    cost_us: Annotated[float | None, _said("measured")]
    recoverable_us: float | None
    recoverable_range_us: Range | None
    basis: Annotated[BasisName | None, _said("what the gain rests on")]
    title: str
    why: str
    fix: str
    when_fine: str


class ShareDocument(TypedDict):
    """A phase's or an owner's part of the sampled step."""

    name: str
    us: float
    share: Annotated[float, _said("of the step, 0 to 1")]


class NodeDocument(TypedDict):
    """A line of a function in the sampled tree."""

    parent: Annotated[int, _said("its caller's place in the list, -1 for none")]
    function: str
    file: str
    line: int
    owner: str
    phase: PhaseName
    us: Annotated[float, _said("with all that it calls")]
    self_us: float


class SampledDocument(TypedDict):
    """The host's time by function, without the profiler."""

    step_us: float
    steps: int
    samples: int
    overhead: Annotated[float | None, _said("how much longer the sampled steps took, as a part")]
    phases: list[ShareDocument]
    owners: list[ShareDocument]
    nodes: list[NodeDocument]


class DearOpDocument(TypedDict):
    """An op that takes much of the host's time itself."""

    op: str
    scope: list[str]
    per_step: float
    us: Annotated[float, _said("with all that it calls")]
    self_us: float


class CountedDocument(TypedDict):
    """The host's time as the trace has it, by what it is in."""

    step_us: float
    dispatch_us: Annotated[float, _said("in ops, without the calls in them")]
    launches_us: float
    allocations_us: float
    queries_us: float
    other_calls_us: float
    waits_us: Annotated[float, _said("held by the device")]
    input_us: Annotated[float, _said("in a loader's `__next__`")]
    python_us: Annotated[float, _said("between ops and calls")]
    ops_per_step: float
    launches_per_step: float
    kernels_per_launch: float
    scaled: Annotated[bool, _said("whether the profiler's share was taken out of the times")]
    dearest: Annotated[list[DearOpDocument], _said("the ops that take most themselves")]


class HostDocument(TypedDict):
    """Where the host's time goes."""

    sampled: SampledDocument | None
    counted: CountedDocument | None


class RunLineDocument(TypedDict):
    """A line of the program that a phase of its run was met in."""

    file: str
    line: int
    function: str
    share: Annotated[float, _said("of the run's time")]


class PhaseFindingDocument(TypedDict):
    """A sync of a phase; a step is a round of the phase's loop, or the whole phase."""

    id: str
    rule: str
    title: str
    severity: SeverityName
    file: str | None
    line: int | None
    per_step: float
    wait_us: float
    recoverable_us: float | None


class RunPhaseDocument(TypedDict):
    """What the program does between or within its steps, but not in each of them."""

    kind: str
    name: str
    file: str
    function: str
    first: Annotated[int, _said("the first of its lines")]
    last: Annotated[int, _said("the last of its lines")]
    share: Annotated[float, _said("of the run's time")]
    every: Annotated[float | None, _said("after how many steps it comes again; None where it came once")]
    lines: list[RunLineDocument]
    trace: Annotated[str | None, _said("the name of the trace that holds a part of it")]
    missing: Annotated[str | None, _said("why there is no such trace, where one was wanted")]
    bound: BoundName | None
    verdict: str
    step_us: Annotated[float | None, _said("a round of its loop, or the whole phase")]
    recoverable_us: Annotated[float | None, _said("of that")]
    gain_share: Annotated[float | None, _said("of the run's time")]
    findings: list[PhaseFindingDocument]


class RunDocument(TypedDict):
    """The program's whole run, as far as capture watched it."""

    sentence: str
    steps: Annotated[int, _said("all that were seen")]
    watched_us: Annotated[float, _said("how long those took in all")]
    counted: Annotated[int, _said("undisturbed steps, which the mean and the shares are of")]
    mean_us: Annotated[float, _said("of a step, with the phases between them")]
    median_us: float
    period: Annotated[int, _said("after how many steps their times repeat")]
    period_us: Annotated[list[float], _said("of each step of a period the median time")]
    steps_share: Annotated[float | None, _said("the steps' own part of the run's time")]
    gain_share: Annotated[float | None, _said("of the run's time, of all that is recorded")]
    phases: list[RunPhaseDocument]


class RemedyDocument(TypedDict):
    """One thing to change: syncs to remove together, or a habit to give up."""

    findings: Annotated[list[str], _said("ids of the syncs that go together")]
    habit: Annotated[str | None, _said("its id, where it is one")]
    what: str
    where: str
    fix: str
    alone_us: Annotated[float, _said("what it saves alone")]
    range_us: Range
    after_us: Annotated[float | None, _said("what it gains after all those above; None for an upper bound")]
    basis: BasisName
    confidence: ConfidenceName


class HiddenDocument(TypedDict):
    """What an option leaves out."""

    by: Annotated[str, _said("the option")]
    findings: int
    habits: int


class Document(TypedDict):
    """What each begins with."""

    schema: str
    syncscan: Annotated[str, _said("the version that wrote it")]


class AnalysisDocument(Document):
    """All that was found out about one trace."""

    trace: TraceDocument
    step: StepDocument
    dry_run: Annotated[DryRunDocument | None, _said("None of a recording")]
    findings: Annotated[list[ListedFinding], _said("sorted by what they save, then by wait")]
    groups: list[GroupDocument]
    habits: list[HabitDocument]
    host: HostDocument | None
    run: Annotated[RunDocument | None, _said("None where capture didn't watch it")]
    remedies: Annotated[list[RemedyDocument], _said("what to change, in order")]
    hidden: list[HiddenDocument]
    overlaps: list[OverlapDocument]


class SavedDocument(AnalysisDocument):
    """An analysis with all that it takes to ask further."""

    saved: Saved


class LimitsDocument(TypedDict):
    """What no step can be shorter than."""

    host_us: float
    device_us: float


class PipelineDocument(TypedDict):
    """One scope's work beside another's."""

    scope: str
    beside: str
    scope_us: float
    beside_us: float
    at_best_us: float
    saving_us: float


class WhatifDocument(Document):
    """The step without chosen syncs."""

    steps_found: str
    removed: Annotated[list[str], _said("ids of findings")]
    observed_us: float
    baseline_us: Annotated[float, _said("the replay with nothing removed")]
    predicted_us: float
    range_us: Range
    saving_us: float
    speedup: Annotated[float, _said("baseline over predicted")]
    bound_after: BoundName
    limits: LimitsDocument
    notes: list[str]
    profiled_us: Annotated[float, _said("the step in the trace")]
    calibrated: Annotated[bool, _said("whether the unprofiled step's time is known")]
    host_scale: Annotated[float, _said("what is left of the host's time without the profiler")]
    advice: list[str]
    groups: list[GroupDocument]
    overlaps: list[OverlapDocument]
    pipelines: list[PipelineDocument]


class StateDocument(TypedDict):
    """A program as it was at one time."""

    paths: list[str]
    steps: int
    device: str
    bound: str


class BeforeAndAfter(TypedDict):
    """A time of both states."""

    before: float | None
    after: float | None


class StepChangeDocument(TypedDict):
    """What the step gained."""

    before_us: float | None
    after_us: float | None
    saving_us: float | None
    margin_us: Annotated[float | None, _said("half of the 95 % interval")]
    distinguishable: Annotated[bool, _said("whether the change can be told from noise")]
    unprofiled: Annotated[bool, _said("whether both times are without the profiler")]
    device_busy_us: BeforeAndAfter
    not_comparable: Annotated[str | None, _said("why the two can't be compared")]


class PromiseDocument(TypedDict):
    """What had been projected for the syncs that are gone."""

    saving_us: float
    range_us: Range
    kept: Annotated[str, Meta(extra_json_schema={"enum": [member.name.lower() for member in Kept]})]


class MovedDocument(TypedDict):
    """A wait that moved to another sync."""

    to: Annotated[str, _said("the id of the finding that waits now")]
    us: Annotated[float, _said("how much of the wait moved")]
    before_us: float
    after_us: float


class SiteDocument(TypedDict):
    """The findings of one place."""

    ids: list[str]
    rules: list[str]
    source: Place | None
    called_from: Place | None
    per_step: float
    wait_us: float
    bubble_us: float
    recoverable_us: float | None


class ChangeDocument(TypedDict):
    """A place that went, came or changed."""

    change: Annotated[str, _of(Change)]
    rule: str
    op: str
    scope: list[str]
    phase: PhaseName
    intended: bool
    waits_more_or_less_often: bool
    waits_longer_or_shorter: bool
    before: SiteDocument | None
    after: SiteDocument | None


class HabitChangeDocument(TypedDict):
    """A habit that came or went."""

    change: Annotated[str, _of(Change)]
    rule: str
    scope: list[str]


class DiffDocument(Document):
    """What changed from one recording to another."""

    verdict: str
    before: StateDocument
    after: StateDocument
    step: StepChangeDocument
    promised: PromiseDocument | None
    moved: list[MovedDocument]
    changes: list[ChangeDocument]
    habits: list[HabitChangeDocument]
    notes: list[str]


class CheckedFinding(TypedDict):
    """A finding that a limit counts."""

    id: str
    rule: str
    op: str
    scope: list[str]
    file: str | None
    line: int | None
    exact: bool | None
    per_step: float
    wait_us: float
    recoverable_us: float | None


class ExemptFinding(CheckedFinding):
    """One that no limit counts, and why."""

    by: Annotated[str, _of(By)]
    reason: str


class LimitDocument(TypedDict):
    """The most that a project allows."""

    by: str | None
    glob: str | None
    syncs: float | None
    wait_ms: float | None
    recoverable: float | None
    held_up: Annotated[float | None, _said("of jobs alone")]


class ViolationDocument(TypedDict):
    """A limit that isn't kept."""

    limit: LimitDocument
    sentence: str
    findings: list[str]


class VerdictDocument(TypedDict):
    """Whether one recording keeps the limits."""

    path: str
    passed: bool
    violations: list[ViolationDocument]
    counted: list[CheckedFinding]
    exempt: list[ExemptFinding]
    notes: list[str]


class CheckDocument(Document):
    """Whether recordings keep a project's limits."""

    passed: bool
    rules_from: str
    traces: list[VerdictDocument]


class HolderDocument(TypedDict):
    """A rank that holds the others up."""

    rank: int
    late: str
    steps: int
    cause: str | None
    why: str


class JobRemedyDocument(TypedDict):
    """A sync to remove on all its ranks."""

    id: str
    saves: str
    range: str
    on: str


class FleetSaid(TypedDict):
    """The words of a job's other reports."""

    verdict: str
    reason: str
    summary: str
    holders: list[HolderDocument]
    remedies: list[JobRemedyDocument]
    then: list[str]
    single_traces_get_wrong: list[str]
    missing: str


class FleetDocument(Document):
    """All that was found out about a job."""

    said: FleetSaid
    job: Any


class JobStateDocument(TypedDict):
    """A job as it was at one time."""

    ranks: int
    steps: int
    held_up_us: float | None
    holders: list[int]


class JobStepDocument(TypedDict):
    """What the job's step gained."""

    before_us: float | None
    after_us: float | None
    saving_us: float | None
    margin_us: float | None
    distinguishable: bool
    unprofiled: bool
    not_comparable: str | None


class JobSiteDocument(TypedDict):
    """The findings of one place, over ranks."""

    ids: list[str]
    file: str | None
    line: int | None
    ranks: list[int]
    per_step: float
    wait_us: float | None
    job_gain_us: float | None


class JobChangeDocument(TypedDict):
    """A place that went, came, changed, or is on other ranks."""

    change: Annotated[str, _of(Change)]
    rule: str
    op: str
    scope: list[str]
    phase: str
    intended: bool
    waits_more_or_less_often: bool
    waits_longer_or_shorter: bool
    on_other_ranks: bool
    before: JobSiteDocument | None
    after: JobSiteDocument | None


class FleetDiffDocument(Document):
    """What changed from one state of a job to another."""

    verdict: str
    before: JobStateDocument
    after: JobStateDocument
    step: JobStepDocument
    promised: PromiseDocument | None
    changes: list[JobChangeDocument]
    notes: list[str]


class OneOffDocument(TypedDict):
    """What is paid once."""

    name: str
    us: float
    note: str


class NaiveDocument(TypedDict):
    """What a usual mistake would have said."""

    mistake: str
    us: float
    ratio: float
    why: str


class TriedBatch(TypedDict):
    """A batch size that was tried; None where memory ran out."""

    batch: int
    us: float | None
    samples_per_second: float | None


class ThroughputDocument(TypedDict):
    """The best batch size, and how it was found."""

    best_batch: int
    samples_per_second: float | None
    enough_batch: int
    largest_batch: int
    out_of_memory_seen: bool
    ended: str
    tried: list[TriedBatch]


class TimingDocument(Document):
    """The time of a call."""

    name: str
    device: str
    clock: Annotated[str, _of(Clock)]
    median_us: float
    mean_us: float
    std_us: float
    spread: Annotated[float, _said("between the quartiles, as a part of the median")]
    percentiles_us: dict[str, float]
    alone_us: Annotated[float, _said("a lone call, from an idle device to its answer")]
    samples: int
    calls_per_sample: Annotated[int, _said("in a row, of which a sample is the mean")]
    stable: Annotated[bool, _said("whether the time had settled")]
    one_offs: list[OneOffDocument]
    naive: list[NaiveDocument]
    throughput: ThroughputDocument | None
    notes: list[str]


class GainDocument(TypedDict):
    """A part of the step, with its interval."""

    share: float
    range: Range


class DifferenceDocument(TypedDict):
    """How far two programs' results lie apart."""

    losses: float | None
    parameters: float | None


class ResultDocument(TypedDict):
    """Whether both programs compute the same."""

    same: Annotated[str, _of(Same)]
    why: str
    steps: int
    compared: str
    deterministic: bool | None
    difference: DifferenceDocument | None
    own_difference: DifferenceDocument | None
    rounding_difference: DifferenceDocument | None
    not_compared: str | None


class PairDocument(TypedDict):
    """One pair of processes."""

    before_us: float
    after_us: float
    gain: float


class ProofDocument(Document):
    """Whether a change is a real gain and computes the same."""

    before: str
    after: str
    device: str
    verdict: Annotated[str, _of(Verdict)]
    proven: bool
    before_us: float | None
    after_us: float | None
    gain: Annotated[GainDocument | None, _said("parts of the step")]
    confidence: Annotated[float, _said("of the interval")]
    matters: Annotated[float, _said("the least gain that counts")]
    projected: Annotated[GainDocument | None, _said("where a trace of before was given")]
    result: ResultDocument
    pairs: list[PairDocument]
    steps: int
    clock: str
    together: Annotated[bool, _said("whether both took turns")]
    seconds: float
    stopped: Annotated[str, _said("why no more was measured")]
    notes: list[str]


class GuessedSource(TypedDict):
    """Where a guess stands."""

    file: str
    line: Annotated[int, _said("from 1; of a notebook within its cell")]
    column: Annotated[int, _said("from 1, in characters")]
    end_line: int
    cell: Annotated[int | None, _said("the number of a notebook's cell, from 1")]
    function: str
    code: Annotated[str, _said("the expression")]


class GuessDocument(TypedDict):
    """One place in the source that would wait by its shape."""

    rule: str
    name: str
    cause: Annotated[str, _of(Cause)]
    severity: SeverityName
    confidence: ConfidenceName
    scope: list[str]
    source: GuessedSource
    place: Annotated[str, _said("the loop or function that runs in each step")]
    because: Annotated[str, _said("why it was guessed to wait, and to run in each step")]
    title: str
    why: str
    fix: str
    when_fine: str


class AllowedGuess(GuessDocument):
    """One that the source, or the project's file, allows."""

    by: str
    reason: str


class LintDocument(Document):
    """Guesses from the source alone."""

    limits: str
    files: Annotated[int, _said("how many were read")]
    guesses: list[GuessDocument]
    allowed: list[AllowedGuess]
    hidden: Annotated[int, _said("what --select and --ignore leave out")]
    notes: list[str]
    unread: Annotated[list[str], _said("files that couldn't be read: a sentence each")]


class RuleEntry(TypedDict):
    """What there is to read about a rule."""

    id: str
    name: str
    summary: str
    sections: dict[str, str]


class SyncRuleEntry(RuleEntry):
    """Of a rule that names syncs."""

    cause: Annotated[str, _of(Cause)]


class HabitRuleEntry(RuleEntry):
    """Of a rule that finds habits."""

    area: Annotated[str, _of(Area)]


class RulesDocument(TypedDict):
    """The catalogue of rules."""

    schema: str
    rules: list[SyncRuleEntry]
    habits: list[HabitRuleEntry]


class LinesDocument(TypedDict):
    """Where synchronises were called: frames and stacks are numbered, the rest names them."""

    source: str
    columns: list[str]
    frames: list[Frame]
    stacks: Annotated[list[list[int]], _said("places in `frames`, innermost first")]
    modules: list[str]
    syncs: list[SyncRecord]


class AllLinesDocument(LinesDocument, total=False):
    """The same; calls that were timed by name, and the debug mode's warnings where torch calls nobody back."""

    calls: list[TimedCall]
    warned: list[WarnedSync]


class ClocksDocument(TypedDict, total=False):
    """What the device's clocks and power were."""

    calibrated: Clocks
    recorded: Clocks


class SampledTree(TypedDict):
    """The host, sampled without the profiler."""

    rate: float
    steps: int
    samples: int
    step_us: float
    frames: list[HostFrame]
    nodes: list[HostSample]


class SampledHostDocument(SampledTree, total=False):
    """The same with what its thread and others used meanwhile, since 0.2."""

    used: ThreadUse
    threads: list[OtherThread]


class RunRecordDocument(TypedDict):
    """The run's steps from a capture's first to its last, and what lies between and within them."""

    steps: int
    steps_us: Annotated[list[float], _said("the time of each")]
    disturbed: Annotated[list[Disturbed], _said("whose times aren't the program's own")]
    recorded: Annotated[list[list[int]], _said("the first that is recorded, and the first behind those")]
    period: Annotated[int, _said("after how many steps their times repeat")]
    loop: Annotated[RunLoop | None, _said("that the steps are rounds of")]
    window: Annotated[list[int], _said("the first step, and the first behind those, that shares are taken of")]
    sampled_us: Annotated[float, _said("of those")]
    phases: list[RunPhase]
    spans: Annotated[list[RunSpan], _said("what was sampled, in order")]


class FirstCapture(Document):
    """What every capture stores."""

    unprofiled_step_us: Annotated[float | None, _said("median of the calibrated steps")]
    calibrated_steps: int
    device_drained: bool
    lines: AllLinesDocument | None
    events: Annotated[list[EventCall], _said("records and waits of events")]
    unfinished_step: Annotated[int | None, _said("the number of the step that the program's end cut short")]


class CaptureDocument(FirstCapture, total=False):
    """What a capture stores in its trace, under the key `syncscan`."""

    unprofiled_quartiles_us: list[float] | None
    unprofiled_mean_us: float | None
    unprofiled_steps_us: list[float]
    unprofiled_clock: str | None
    unprofiled_undisturbed: bool | None
    first_step: int | None
    notes: list[str]
    collections: list[Collection]
    clocks: ClocksDocument
    host: SampledHostDocument
    run: RunRecordDocument | None
    phase: RecordedPhase
    unprofiled_period: Annotated[int, _said("after how many of the timed steps they repeat")]
