"""Describe an analysis in blocks: its first screen, what each finding and habit costs, and where the time goes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding
from syncscan.model.race import Race
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, phrases, program_run, source, states
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
    Stacked,
    Words,
    code,
    command,
    facts,
    strong,
)  # fmt: skip
from syncscan.report.front import Front, RunBar, front_of
from syncscan.report.front_changes import ListedChange
from syncscan.report.front_places import Hottest
from syncscan.report.habits import HabitText
from syncscan.report.story import FindingText, Story, story_of
from syncscan.report.timed_steps import unprofiled
from syncscan.report.units import duration, times

MAX_ROWS = 50
"""Findings and habits in the table."""
PHASES = 12
"""Phases and batches that are shown; JSON has them all."""
TITLE = "Why each one costs time, what to do instead, and when to leave it"
BAR = 60
"""Characters of the bar that shows the run's parts."""
_SURE = {"yes": "Yes", "partly": "Partly", "no": "No"}


def blocks(analysis: Analysis, verbose: bool = False, program: Sequence[str] | None = None) -> Iterator[Block]:
    """Yield the first screen; `verbose` puts all tables, and each finding's reasons, behind it."""
    yield from first_screen(front_of(analysis, program), verbose)
    if verbose:
        yield from behind_it(analysis)


def behind_it(analysis: Analysis) -> Iterator[Block]:
    """Yield what stands behind the first screen: tables in the order of the limit, then each finding's reasons."""
    story = story_of(analysis)
    yield from _ranked(story)
    of_device = kernels(story)
    of_host = host_time(story)
    yield from itertools.chain(of_device, of_host) if story.kernels_lead else itertools.chain(of_host, of_device)
    yield from raced(story)
    yield from compiled(story)
    yield from phases(story)
    yield from details(story, analysis.step)
    yield from in_states(analysis)
    if obstacles := states.in_the_way(analysis, removed=False):
        yield Sentence(obstacles)
    yield from of_run(analysis, story)
    yield from about(analysis, story)


def of_run(analysis: Analysis, story: Story) -> Iterator[Block]:
    """Yield what else the run does: a sentence, and of a dry run what waits between its steps."""
    if story.run_sentence:
        yield Sentence(story.run_sentence)
    rows = [(row.name, code(row.where), Stacked((row.verdict, *row.waits))) for row in program_run.rows(analysis)]
    if rows:
        yield Heading("Between the steps")
        yield Grid((GridColumn("part"), GridColumn("where"), GridColumn("waits")), tuple(rows))


def first_screen(front: Front, verbose: bool = False) -> Iterator[Block]:
    yield Sentence(_header(front), "dim")
    yield Sentence("")
    yield Heading(front.verdict, 1)
    yield Sentence(front.together)
    yield Sentence("")
    if front.changes:
        yield Items(tuple(changes(front.changes)))
        yield Sentence("")
    most = front.most
    yield facts(
        [
            ("Then", front.then),
            ("Most", _hottest(most) if most else ""),
            ("If", front.if_compiled),
            ("Run", _of_run(front.run) if front.run else ""),
            ("Races", front.races),
            ("Sure?", f"{_SURE[front.sure]}: {front.why_sure[:1].lower()}{front.why_sure[1:]}"),
            ("Next", command(front.next)),
            ("More", "" if verbose else "-v"),
            ("Hidden", front.hidden),
        ],
        indent=0,
    )


def _header(front: Front) -> str:
    busy = "" if front.busy is None else f"device busy {front.busy:.0%}"
    return " · ".join(part for part in (front.name, front.device, front.step and f"step {front.step}", busy) if part)


def changes(listed: Sequence[ListedChange]) -> Iterator[Item]:
    """Yield a change as two lines: gain, step and place; then what to do. Gains and arrows stand below one another."""
    amounts = max(len(change.amount) for change in listed)
    arrow = max(change.becomes.find("→") for change in listed)
    for number, change in enumerate(listed, 1):
        becomes = f"  {' ' * (arrow - change.becomes.find('→'))}{change.becomes}" if change.becomes else ""
        line, comma, about = change.place.partition(", ")
        where = (code(line), f"{comma}{about}") if change.is_at_line else (change.place,)
        words = (strong(change.amount.rjust(amounts)), f"{becomes}  ", *where)
        below: list[Words] = [change.do, *([Span(f"  {change.below}", "dim")] if change.below else [])]
        yield Item(words, tuple(below), Span(f"{number}."))


def _hottest(most: Hottest) -> Words | Stacked:
    took = f"{duration(most.us, 2)} of {duration(most.of_us)} on the host"
    return Stacked((code(most.place), f"{most.op}: {took}")) if most.op else (code(most.place), f": {took}")


def _of_run(run: RunBar) -> Words | Stacked:
    return Stacked((bar(run), run.sentence)) if run.parts else run.sentence


def bar(run: RunBar) -> Span:
    """Return the run's parts as a bar of characters, the steps first."""
    shades = itertools.cycle("█▒░▓")
    return Span("".join(shade * round(BAR * part.share) for shade, part in zip(shades, run.parts, strict=False)), "dim")


def about(analysis: Analysis, story: Story) -> Iterator[Block]:
    """Yield what the recording is: its steps, under the profiler and without it, and what reading it found missing."""
    yield Heading("About this recording")
    yield Sentence(_recorded(analysis))
    yield Sentence(story.steps_found, "dim")
    yield from (Sentence(sentence, "warn") for sentence in story.lacking)
    yield from (Sentence(f"warning: {warning}", "warn") for warning in story.warnings[:10])


def _ranked(story: Story) -> Iterator[Block]:
    """Yield a row per finding and habit, with what it saves alone; without costs, for a dry run, how often it waits."""
    if not story.ranked:
        return
    costs = ("saves alone", "waits") if story.costed else ()
    columns = (*(GridColumn(name, right=True) for name in costs), GridColumn("what; rule, where"))
    yield Heading(story.ranking)
    yield Grid(columns, tuple(_row(entry, story.costed) for entry in story.ranked), MAX_ROWS)


def _row(entry: FindingText | HabitText, costed: bool) -> tuple[Words | Stacked, ...]:
    if isinstance(entry, HabitText):
        title, rule = entry.title, entry.rule
        saves, waits, details = entry.saves, "", [entry.where, entry.doubt]
    else:
        title, rule = entry.of.title, entry.of.rule
        saves = f"{entry.saves} ({entry.share})" if entry.share else entry.saves
        waits, details = entry.waits, [entry.where, *entry.circumstances, entry.doubt]
    place = " · ".join(part for part in (rule, *details) if part)
    return *((saves, waits) if costed else ()), Stacked((title, Span(place, "dim")))


def phases(story: Story) -> Iterator[Block]:
    """Yield the work of a served step, by batch."""
    if story.phases:
        columns = (GridColumn("phase"), *(GridColumn(name, right=True) for name in ("batch", "steps", "median time")))
        rows = (
            (p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us))
            for p in story.phases
        )
        yield Grid(columns, tuple(rows), PHASES)


def in_states(analysis: Analysis) -> Iterator[Block]:
    """Yield the step with its syncs or without, compiled or not."""
    if analysis.states:
        columns = (GridColumn("the step"), *(GridColumn(name, right=True) for name in ("takes", "between", "change")))
        rows = ((s.name, s.takes, s.between, s.change) for s in states.rows(analysis.states))
        yield Fold(states.TITLE, (Grid(columns, tuple(rows)),))


def raced(story: Story) -> Iterator[Block]:
    if story.races:
        yield Heading("Races: results may be wrong, by timing")
        yield Items(tuple(map(_race, story.races)), len(story.races))


def _race(race: Race) -> Item:
    often = "" if race.count == 1 else f" ({race.count} times)"
    text = Span(f"{race.why} {race.fix}", "dim")
    return Item((Span(race.lines, "bad"), f"{often}: {race.title}."), (text,))


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
    if story.host_sentence:
        yield Sentence(story.host_sentence)
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
