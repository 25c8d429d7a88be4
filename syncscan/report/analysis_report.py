"""Describe an analysis in blocks: what to change, what each finding and habit costs, and where the time goes.

The terminal's first screen and its table of findings fit themselves to the width (`text`); all else is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding
from syncscan.model.race import Race
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, phrases, races, remedies, source, states
from syncscan.report.blocks import (
    Block,
    Code,
    Fold,
    Grid,
    GridColumn,
    Heading,
    Item,
    Items,
    Sentence,
    Span,
    Words,
    code,
    facts,
    strong,
    to_do,
)  # fmt: skip
from syncscan.report.habits import HabitText
from syncscan.report.remedies import RemedyText
from syncscan.report.story import FindingText, Story, story_of
from syncscan.report.timed_steps import unprofiled
from syncscan.report.units import duration, times

MAX_ROWS = 50
"""Findings in the table."""
PHASES = 12
"""Phases and batches that are shown; JSON has them all."""
TITLE = "Why each one costs time, what to do instead, and when to leave it"


def blocks(analysis: Analysis) -> Iterator[Block]:
    story = story_of(analysis)
    yield Heading(story.verdict, 1)
    yield Sentence(story.opening)
    yield from to_change(story)
    yield from phases(story)
    yield from _table(story)
    yield from in_states(analysis)
    yield from raced(story)
    if story.kernels_lead:
        yield from kernels(story)
    yield from compiled(story)
    if story.host_leads:
        yield from host_time(story)
    yield from details(story, analysis.step)
    yield Sentence(story.steps_found)
    if story.hidden:
        yield Sentence(story.hidden)
    yield from (Sentence(f"warning: {warning}", "warn") for warning in story.warnings[:10])
    yield Sentence(_recorded(analysis), "dim")


def to_change(story: Story) -> Iterator[Block]:
    if story.nothing:
        yield to_do(story.nothing)
    if story.remedies:
        yield Heading(story.to_do)
        yield Items(tuple(map(_remedy, story.remedies)), remedies.SHOWN)
    if story.then or story.stop:
        yield to_do(phrases.sentences(story.then, story.stop))


def _remedy(remedy: RemedyText) -> Item:
    at = (" (", code(remedy.where), ")") if remedy.where else ()
    words = (strong(remedy.saves), f", {remedy.doubt}: ", remedy.what, *at, f". {remedy.fix}")
    return Item(words, mark=Span(f"{remedy.number}."))


def phases(story: Story) -> Iterator[Block]:
    """Yield the work of a served step, by batch."""
    if story.phases:
        columns = (GridColumn("phase"), *(GridColumn(name, right=True) for name in ("batch", "steps", "median time")))
        rows = (
            (p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us))
            for p in story.phases
        )
        yield Grid(columns, tuple(rows), PHASES)


def _table(story: Story) -> Iterator[Block]:
    """Yield a row per finding; without costs, for a dry run, only what waits and where."""
    if not story.findings:
        return
    costs = ("saves (projected)", "waits (measured)", "idle after") if story.costed else ()
    columns = (GridColumn("severity"), *(GridColumn(name, right=True) for name in costs), *_WHAT)
    yield Grid(columns, tuple(_row(finding, story.costed) for finding in story.findings), MAX_ROWS)


_WHAT = (GridColumn("what"), GridColumn("where"))


def _row(finding: FindingText, costed: bool) -> tuple[Words, ...]:
    placed = (code(finding.where), *(f", {each}" for each in finding.circumstances))
    numbers = (finding.saves, finding.waits, finding.idle) if costed else ()
    place = placed if finding.where else ", ".join(finding.circumstances)
    return finding.severity.value, *numbers, finding.title, place


def in_states(analysis: Analysis) -> Iterator[Block]:
    """Yield the step with its syncs or without, compiled or not."""
    if analysis.states:
        columns = (GridColumn("the step"), *(GridColumn(name, right=True) for name in ("takes", "between", "change")))
        rows = ((s.name, s.takes, s.between, s.change) for s in states.rows(analysis.states))
        yield Fold(states.TITLE, (Grid(columns, tuple(rows)),))


def raced(story: Story, verbose: bool = False) -> Iterator[Block]:
    if story.races:
        yield Heading(races.TITLE)
        yield Items(tuple(_race(race, verbose) for race in story.races), len(story.races) if verbose else races.SHOWN)


def _race(race: Race, verbose: bool) -> Item:
    often = "" if race.count == 1 else f" ({race.count} times)"
    text = f"{race.why} {race.fix}" if verbose else race.fix
    return Item((Span(races.lines(race), "bad"), f"{often}: {race.title}."), (Span(text, "dim"),))


def kernels(story: Story) -> Iterator[Block]:
    """Yield what is left to gain where the device is the limit, and the longest kernels."""
    if story.kernels:
        yield Sentence(story.kernels)
    if story.kernel_table:
        yield Fold(story.kernel_table.title, (_grid(story.kernel_table),))


def compiled(story: Story) -> Iterator[Block]:
    """Yield dynamo's graph breaks, with the waits at each; nothing unless dynamo was asked."""
    if story.compiled:
        yield Sentence(story.compiled)
    if story.compile_table:
        rows = (
            Item((code(at), f" {became}: {why}"), _waits(waits)) for at, became, why, waits in story.compile_table.rows
        )
        more = (Item(f"… {story.compile_table.more} more: --format json"),) if story.compile_table.more else ()
        yield Fold(story.compile_table.title, (Items((*rows, *more)),))
    yield from (Sentence(note, "dim") for note in story.compile_notes)


def _waits(waits: str) -> tuple[Words, ...]:
    return (strong(f"the host waits there: {waits}"),) if waits else ()


def host_time(story: Story) -> Iterator[Block]:
    if story.host_tables:
        tables = (block for table in story.host_tables for block in (Heading(table.title, 3), _grid(table)))
        yield Fold(host.TITLE, (*tables, *(Sentence(note, "dim") for note in story.host_notes)))


def _grid(table: host.TextTable) -> Grid:
    columns = tuple(GridColumn(name, right=number >= table.words) for number, name in enumerate(table.head))
    rows = (tuple(code(text) if n < table.code else text for n, text in enumerate(row)) for row in table.rows)
    more = ((f"… {table.more} more", *[""] * (len(columns) - 1)),) if table.more else ()
    return Grid(columns, (*rows, *more))


def details(story: Story, step: StepSummary) -> Iterator[Block]:
    if story.ranked:
        each = (_habit(x) if isinstance(x, HabitText) else _finding(x.of, step) for x in story.ranked)
        yield Fold(TITLE, tuple(block for blocks in each for block in blocks))


def _finding(f: Finding, step: StepSummary) -> Iterator[Block]:
    yield Heading((strong(f.title), " (", code(f.id), f", confidence {f.confidence.value})"), 3)
    yield facts(finding_facts(f, step))
    if f.excerpt:
        yield from excerpt(f.excerpt)


def finding_facts(f: Finding, step: StepSummary) -> Sequence[tuple[str, Words]]:
    inner = f.called_from
    return [
        ("rule", f"{f.rule} ({f.cause.value}), {f.owner}'s code"),
        ("line", _exact_line(f)),
        ("waits in", f"{inner.file}:{inner.line} {inner.function}" if inner else ""),
        ("module", code(" > ".join(f.module))),
        ("scope", code(" > ".join(f.scope))),
        ("chain", code(" > ".join(phrases.chain(f)))),
        ("thread", f"{f.thread}, {phrases.phase_of(f)}{times(f.per_step)}"),
        *phrases.facts(f, step),
    ]


def _exact_line(f: Finding) -> str:
    source = f.source
    if not source:
        return ""
    if source.exact:
        return f"{source.file}:{source.line} in {source.function}"
    if source.candidates:
        lines = ", ".join(map(str, source.candidates))
        return f"{source.file}:{lines} in {source.function} (candidates: calls in it that match this op)"
    return f"in {source.function}, defined at {source.file}:{source.line} (the trace doesn't record the exact line)"


def _habit(habit: HabitText) -> Iterator[Block]:
    place = (" (", code(habit.where), ")") if habit.where else ()
    saves = f"{habit.saves}, {habit.doubt}" if habit.doubt else habit.saves
    yield Heading((strong(habit.title), *place, f": {saves} (", code(habit.id), f", {habit.severity.value})"), 3)
    yield habit_facts(habit)


def habit_facts(habit: HabitText) -> Grid:
    return facts([("rule", f"{habit.rule}, confidence {habit.confidence}"), *habits.facts(habit)])


def excerpt(lines: Excerpt) -> Iterator[Block]:
    yield Code("\n".join(source.numbered(lines)), "python")
    if lines.newer:
        yield Sentence(source.NEWER, "dim")


def _recorded(analysis: Analysis) -> Words:
    info, step = analysis.trace.info, analysis.step
    steps = f"{step.count} steps" + (f" of {duration(step.observed_us)}" if step.observed_us else "")
    known = unprofiled(analysis)
    parts = [*(d for d in info.devices[:1] if d), steps, *([f"{known} without the profiler"] if known else [])]
    return code(PurePath(info.path).name), f" · {' · '.join(parts)}"
