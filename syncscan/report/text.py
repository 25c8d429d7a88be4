"""From an Analysis to a terminal report: a first screen of ten lines, the findings' table, and the rest on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity, Source
from syncscan.model.libraries import path_in_package
from syncscan.model.phases import PhaseSummary
from syncscan.model.printable import printable
from syncscan.model.step import StepSummary
from syncscan.report import habits, host, phrases, remedies
from syncscan.report.habits import ToldHabit
from syncscan.report.remedies import ToldRemedy
from syncscan.report.story import Story, ToldFinding, story_of
from syncscan.report.terminal import written
from syncscan.report.units import duration, times

_COLORS = {Severity.HIGH: "bold red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan", Severity.INFO: "dim"}
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
PHASES = 12
"""Phases and batches that are shown; JSON has them all."""
WIDE = 100
"""Columns from which there is room on the first screen for what to do about a sync."""
WORST = 3
"""How many things to change the first screen shows; where there are none, how many findings."""


def render(analysis: Analysis, verbose: int = 0, width: int = 100, color: bool = False) -> str:
    """The report as text.

    Args:
        verbose: 0 for first screen and table, 1 for why, fix and evidence of each finding too.
        width: of the terminal, in characters.
        color: whether to write colours.
    """
    return written(_parts(analysis, story_of(analysis), verbose, width), width, color)


def _parts(analysis: Analysis, story: Story, verbose: int, width: int) -> Iterator[RenderableType]:
    yield from _first_screen(analysis, story, verbose, width)
    if story.phases:
        yield _phases(story.phases)
    if story.findings:
        yield _table(story.findings, width)
    yield from _habits(story, verbose)
    if verbose or story.host_leads:
        yield from _host(story)
    if verbose:
        yield from (_details(finding, analysis.step) for finding in analysis.findings)
    yield Text(printable(story.steps_found), style="dim")
    if not verbose and story.findings:
        yield Text("-v shows why each one waits, what to do instead, and when to leave it alone.", style="dim")


def _first_screen(analysis: Analysis, story: Story, verbose: int, width: int) -> Iterator[RenderableType]:
    yield Text(_headline(analysis), style="dim")
    yield Text.assemble((f"{story.verdict}. ", "bold"), printable(story.reason))
    if story.host_leads:
        yield Text(printable(story.host_sentence))
    for sentence in story.lacking:
        yield Text.assemble(("! ", "bold yellow"), printable(sentence))
    yield Text(printable(story.summary))
    if not story.remedies:
        worst = [told for told in story.findings if told.severity is not Severity.INFO][:WORST]
        yield from (_one_line(number, told) for number, told in enumerate(worst, 1))
    if story.nothing:
        yield _arrow(story.nothing)
    yield from _remedies(story.remedies, verbose, width)
    if story.then:
        yield _arrow(story.then)


def _arrow(sentence: str) -> Text:
    return Text.assemble(("→ ", "bold green"), printable(sentence))


def _remedies(found: Sequence[ToldRemedy], verbose: int, width: int) -> Iterator[RenderableType]:
    """The list of what to change: the first with its fix; those of the others stand with the findings and habits."""
    if len(found) > 1:
        yield Text(f"{remedies.title(found)}:", "bold")
    if found:
        yield _list(found if verbose else found[:WORST], len(found) > 1, verbose, width)
    if len(found) > WORST and not verbose:
        yield Text(f" … and {len(found) - WORST} more with -v.")


def _list(found: Sequence[ToldRemedy], numbered: bool, verbose: int, width: int) -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for told in found:
        mark = Text(f" {told.number}. ") if numbered else Text("→ ", "bold green")
        grid.add_row(mark, Text.assemble((told.saves, "bold"), f", {told.doubt}: ", printable(told.name, 240)))
        if told.number == 1 and (fix := _fix(told, verbose, width)):
            grid.add_row("", Text(printable(fix)))
    return grid


def _fix(told: ToldRemedy, verbose: int, width: int) -> str:
    """Of a sync's fix the first sentence, or none where lines are short: -v has all, the first screen ten lines."""
    if told.habit or verbose:
        return told.fix
    return _SENTENCE.split(told.fix, 1)[0] if width >= WIDE else ""


def _headline(analysis: Analysis) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [PurePath(info.path).name or info.path]
    if info.devices:
        parts.append(info.devices[0] if len(info.devices) == 1 else f"{len(info.devices)} × {info.devices[0]}")
    if info.world_size and info.world_size > 1:
        parts.append(f"rank {info.rank} of {info.world_size}")
    steps = f"{s.count} step{'s' if s.count != 1 else ''}" if analysis.trace.steps else "no steps marked"
    parts += [steps, f"{duration(s.observed_us)} a step" if analysis.trace.steps else duration(s.observed_us)]
    if s.unprofiled_us:
        parts.append(f"{duration(s.unprofiled_us)} without the profiler")
    return printable(" · ".join(parts))


def _one_line(number: int, told: ToldFinding) -> Text:
    line = Text(f" {number}. ", no_wrap=True)
    line.append(f"{told.severity.value:6} ", _COLORS[told.severity])
    line.append(printable(told.what, 60), "bold")
    line.append(f"  waits {told.waits}")
    if told.of.gain:
        line.append(f", would save {told.saves}")
    if where := _where(told.of):
        line.append(f"  {where}", "blue")
    return line


def _habits(story: Story, verbose: int) -> Iterator[RenderableType]:
    """Each habit with what it saves and what proves it; the fix too, where it doesn't stand above already."""
    if story.habits:
        yield Text(f"{habits.TITLE}:", "bold")
    above = story.remedies[0].habit if story.remedies else ""
    for told in story.habits if verbose else story.habits[: habits.SHOWN]:
        name = (f" {told.severity.value:6} ", _COLORS[told.severity])
        yield Text.assemble(name, f"{printable(told.name, 120)}: {told.saves}")
        yield from (Padding(Text(printable(line)), (0, 0, 0, 8)) for line in _of_habit(told, told.id == above, verbose))
    if len(story.habits) > habits.SHOWN and not verbose:
        yield Text(f" … and {len(story.habits) - habits.SHOWN} more with -v.")


def _of_habit(told: ToldHabit, fix_is_told: bool, verbose: int) -> Iterator[str]:
    yield printable(told.evidence, 240)
    yield from (f"{name}: {printable(text, 400)}" for name, text in habits.graphs(told))
    if verbose or not fix_is_told:
        yield f"→ {told.fix}"
    if verbose:
        yield f"why: {told.why}"
        yield f"fine when: {told.when_fine}"
        yield f"id {told.id}, {f'{told.doubt}, ' if told.doubt else ''}confidence {told.confidence}"


def _phases(phases: Sequence[PhaseSummary]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    table.add_column("phase")
    for name in ("batch", "steps", "median time"):
        table.add_column(name, justify="right")
    for p in phases[:PHASES]:
        table.add_row(p.phase.value, "" if p.batch is None else str(p.batch), str(p.count), duration(p.median_us))
    if len(phases) > PHASES:
        table.add_row(f"… {len(phases) - PHASES} more", "", "", "")
    return table


def _host(story: Story) -> Iterator[RenderableType]:
    """Where the host's time goes: its tables, and what they rest on."""
    if story.host_tables:
        yield Text(f"{host.TITLE}:", "bold")
        yield from (Padding(_of_host(table), (0, 0, 0, 1)) for table in story.host_tables)
        yield from (Padding(Text(printable(note), "dim"), (0, 0, 0, 1)) for note in story.host_notes)


def _of_host(found: host.Table) -> Group:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), show_edge=False)
    for number, name in enumerate(found.head):
        table.add_column(printable(name, 40), justify="left" if number < found.words else "right", overflow="fold")
    for row in found.rows:
        table.add_row(*(Text(printable(text, 60)) for text in row))
    if found.more:
        table.add_row(f"… {found.more} more", *[""] * (len(found.head) - 1))
    return Group(Text(found.title), table)


def _table(findings: Sequence[ToldFinding], width: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), width=width, show_edge=False)
    table.add_column("severity", no_wrap=True)
    for name in ("saves", "waits", "idle behind"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what", ratio=3, overflow="fold")
    table.add_column("where", ratio=4, overflow="fold")
    for told in findings:
        table.add_row(
            Text(told.severity.value, _COLORS[told.severity]),
            told.saves,
            told.waits,
            told.idle,
            Text(printable(told.title, 90)),
            Text(_long_where(told.of)),
        )
    return table


def _long_where(f: Finding) -> str:
    parts = [printable(" > ".join(f.where.scope), 70), _where(f)]
    if f.where.phase.value == "backward":
        parts.append("in backward")
    if abs(f.per_step - 1) > 0.005:
        parts.append(times(f.per_step))
    return ", ".join(p for p in parts if p)


def _details(f: Finding, step: StepSummary) -> Padding:
    d = f.diagnosis
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    facts = [
        ("id", f.id),
        ("rule", f"{d.rule} ({d.cause.value}), confidence {f.confidence.value}, {f.where.owner}'s code"),
        ("line", _exact_line(f)),
        ("called from", _called_from(f)),
        ("module", " > ".join(f.where.module)),
        ("chain", " > ".join(phrases.chain(f))),
        ("thread", f"{f.where.thread}, {f.where.phase.value}, {times(f.per_step)}"),
        ("measured", phrases.measured(f, step)),
        ("projected", phrases.projected(f, step)),
        ("why", d.why),
        ("fix", d.fix),
        ("safe to remove", phrases.USES[f.where.use]),
        ("fine when", d.when_fine),
    ]
    for name, value in facts:
        if value:
            grid.add_row(name, Text(printable(value)))
    return Padding(Group(Text(printable(d.title), "bold"), grid), (0, 0, 1, 1))


def _where(f: Finding) -> str:
    """The user's line with its file's name alone, and the library's with its package and its file's name."""
    library = f.where.in_library
    user, inner = _short(f.where.source), _short(library, in_package=True)
    if not (user and inner):
        return user or inner
    return f"{inner}, from {user}" if f.where.in_loop else f"{user}, inside {inner}"


def _short(source: Source | None, in_package: bool = False) -> str:
    if not source:
        return ""
    package, *inner = path_in_package(source.file).split("/")
    folder = f"{package}/{'…/' if inner[1:] else ''}" if in_package and inner else ""
    name = printable(f"{folder}{PurePath(source.file).name}", 60)
    if source.exact:
        return f"{name}:{source.line}"
    if source.candidates:
        return f"{name}:{','.join(map(str, source.candidates[:4]))}?"
    return f"{printable(source.function, 40)}() in {name}"


def _exact_line(f: Finding) -> str:
    source = f.where.source
    if not source:
        return ""
    if source.exact:
        return f"{source.file}:{source.line} in {source.function}"
    if source.candidates:
        lines = ", ".join(map(str, source.candidates))
        return f"{source.file}:{lines} in {source.function} (a guess: the calls in it that can be this op)"
    return f"in {source.function}, defined at {source.file}:{source.line} (the trace doesn't tell the line itself)"


def _called_from(f: Finding) -> str:
    inner = f.where.framework
    return f"{inner.file}:{inner.line} {inner.function}" if inner else ""
