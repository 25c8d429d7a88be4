"""Describe an analysis in blocks: its first screen, what each finding and habit costs, and where the time goes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from syncscan.facts.period import phases_of
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding
from syncscan.model.race import Race
from syncscan.model.step import StepSummary
from syncscan.report import compile_breaks, host, kernels, phrases, program_run, source, states, story
from syncscan.report.blocks import (
    Bar,
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
from syncscan.report.front import Front, front_of
from syncscan.report.front_changes import ListedChange
from syncscan.report.front_places import Hottest
from syncscan.report.program_run import RunBar
from syncscan.report.story import FindingText, HabitText
from syncscan.report.timed_steps import unprofiled
from syncscan.report.units import duration, times

MAX_ROWS = 50
"""Findings and habits in the table."""
PHASES = 12
"""Phases and batches that are shown; JSON has them all."""
TITLE = "Why each one costs time, what to do instead, and when to leave it"
_SURE = {"yes": "Yes", "partly": "Partly", "no": "No"}


def blocks(analysis: Analysis, verbose: bool = False, program: Sequence[str] | None = None) -> Iterator[Block]:
    """Yield the first screen; `verbose` puts all tables, and each finding's reasons, behind it."""
    yield from first_screen(front_of(analysis, program), verbose)
    if verbose:
        yield from behind_it(analysis)


def behind_it(analysis: Analysis) -> Iterator[Block]:
    """Yield what stands behind the first screen: tables in the order of the limit, then each finding's reasons."""
    entries = story.ranked(analysis)
    if entries:
        yield from _ranked(analysis, entries)
    of_device, of_host = kernels.blocks(analysis), host.blocks(analysis)
    yield from itertools.chain(of_device, of_host) if kernels.leads(analysis) else itertools.chain(of_host, of_device)
    yield from raced(analysis)
    yield from compile_breaks.blocks(analysis)
    yield from phases(analysis)
    if entries:
        each = (_habit(x) if isinstance(x, HabitText) else _finding(x.of, analysis.step) for x in entries)
        yield Fold(TITLE, tuple(block for blocks in each for block in blocks))
    yield from states.blocks(analysis)
    if obstacles := states.in_the_way(analysis, removed=False):
        yield Sentence(obstacles)
    yield from program_run.blocks(analysis)
    yield from about(analysis)


def first_screen(front: Front, verbose: bool = False, opens: Sequence[Mapping[str, Any]] = ()) -> Iterator[Block]:
    """Yield the first screen; `opens` says for each change what a page opens by it."""
    limit, colon, why = front.verdict.partition(":")
    yield Sentence(_header(front), "dim")
    yield Sentence("")
    yield Heading((limit + colon, why), 1)
    yield Sentence(front.together)
    yield Sentence("")
    if front.changes:
        yield Items(tuple(changes(front.changes, opens)))
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


def changes(listed: Sequence[ListedChange], opens: Sequence[Mapping[str, Any]] = ()) -> Iterator[Item]:
    """Yield a change as two lines: gain, step and place; then what to do. Gains and arrows stand below one another."""
    amounts = max(len(change.amount) for change in listed)
    arrow = max(change.becomes.find("→") for change in listed)
    for number, (change, opened) in enumerate(itertools.zip_longest(listed, opens), 1):
        becomes = f"  {' ' * (arrow - change.becomes.find('→'))}{change.becomes}" if change.becomes else ""
        line, comma, about = change.place.partition(", ")
        where = (code(line), f"{comma}{about}") if change.is_at_line else (change.place,)
        words = (strong(change.amount.rjust(amounts)), f"{becomes}  ", *where)
        below: list[Words] = [change.do, *([Span(f"  {change.below}", "dim")] if change.below else [])]
        yield Item(words, tuple(below), Span(f"{number}."), opened)


def _hottest(most: Hottest) -> Words | Stacked:
    took = f"{duration(most.us, 2)} of {duration(most.of_us)} on the host"
    return Stacked((code(most.place), f"{most.op}: {took}")) if most.op else (code(most.place), f": {took}")


def _of_run(run: RunBar) -> Words | Stacked:
    return Stacked((Bar(run.parts), run.sentence)) if run.parts else run.sentence


def about(analysis: Analysis) -> Iterator[Block]:
    """Yield what the recording is: its steps, under the profiler and without it, and what reading it found missing."""
    yield Heading("About this recording")
    yield Sentence(_recorded(analysis))
    yield Sentence(story.steps_found(analysis), "dim")
    yield from (Sentence(sentence, "warn") for sentence in story.lacking(analysis))
    yield from (Sentence(f"warning: {warning}", "warn") for warning in analysis.warnings[:10])


def _ranked(analysis: Analysis, entries: Sequence[FindingText | HabitText]) -> Iterator[Block]:
    """Yield a row per finding and habit, with what it saves alone; without costs, for a dry run, how often it waits."""
    costed = story.is_costed(analysis)
    costs = ("saves alone", "waits") if costed else ()
    columns = (*(GridColumn(name, right=True) for name in costs), GridColumn("what; rule, where"))
    yield Heading(story.ranking(analysis))
    yield Grid(columns, tuple(_row(entry, costed) for entry in entries), MAX_ROWS)


def _row(entry: FindingText | HabitText, costed: bool) -> tuple[Words | Stacked, ...]:
    if isinstance(entry, HabitText):
        title, saves, waits, details = entry.of.title, entry.saves, "", [entry.where, entry.doubt]
    else:
        title = entry.of.title
        saves = f"{entry.saves} ({entry.share})" if entry.share else entry.saves
        waits, details = entry.waits, [entry.where, *entry.circumstances, entry.doubt]
    place = " · ".join(part for part in (entry.of.rule, *details) if part)
    return *((saves, waits) if costed else ()), Stacked((title, Span(place, "dim")))


def phases(analysis: Analysis) -> Iterator[Block]:
    """Yield the work of a served step, by batch."""
    if summaries := phases_of(analysis.trace):
        columns = (GridColumn("phase"), *(GridColumn(name, right=True) for name in ("batch", "steps", "median time")))
        rows = (
            (p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us))
            for p in summaries
        )
        yield Grid(columns, tuple(rows), PHASES)


def raced(analysis: Analysis) -> Iterator[Block]:
    if analysis.races:
        yield Heading("Races: results may be wrong, by timing")
        yield Items(tuple(map(_race, analysis.races)), len(analysis.races))


def _race(race: Race) -> Item:
    often = "" if race.count == 1 else f" ({race.count} times)"
    text = Span(f"{race.why} {race.fix}", "dim")
    return Item((Span(race.lines, "bad"), f"{often}: {race.title}."), (text,))


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
    of = habit.of
    place = (" (", code(habit.where), ")") if habit.where else ()
    saves = f"{habit.saves}, {habit.doubt}" if habit.doubt else habit.saves
    yield Heading((strong(of.title), *place, f": {saves} (", code(of.id), f", {of.severity.value})"), 3)
    yield facts(story.habit_facts(of))


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
