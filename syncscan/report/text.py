"""Render an Analysis for a terminal: a first screen of ten lines, a table of ten rows, and the rest on demand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Severity, Source
from syncscan.model.libraries import path_in_package
from syncscan.report import analysis_report, causes
from syncscan.report.blocks import Block, Fold, Heading, Item, Items, Sentence, strong
from syncscan.report.fixes import fitting, height
from syncscan.report.habits import HabitText
from syncscan.report.printable import printable
from syncscan.report.remedies import RemedyText
from syncscan.report.story import NOT_PROJECTED, FindingText, Story, story_of
from syncscan.report.terminal import renderables, written
from syncscan.report.timed_steps import step_time
from syncscan.report.units import duration

_COLORS = {Severity.HIGH: "bold red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan", Severity.INFO: "dim"}
SCREEN = 10
"""Lines of the first screen; room that is left shows how to make the changes."""
_FULL_WIDTH = 120
"""Width for which the first screen's lines are counted; every ten columns less may cost a line."""
WORST = 3
"""Changes that the first screen lists."""
ROWS = 10
"""Findings and habits that the table shows by default."""
WIDE = 100
"""Least width at which a finding may take one line; below it takes two."""
_GAP = 2
"""Columns between two of a table."""


class Terminal(msgspec.Struct, frozen=True):
    width: int
    verbose: bool
    links: bool
    """Whether a file at hand gets a hyperlink."""
    rows: int | None


def render(
    analysis: Analysis,
    verbose: bool = False,
    width: int = 100,
    color: bool = False,
    links: bool = False,
    program: Sequence[str] | None = None,
) -> str:
    """Return the report as text; hyperlinks (OSC 8) need colors.

    `verbose` gives the table all rows, with why, fix and evidence of each finding and habit below it.
    """
    rows = None if verbose or analysis.view.top is not None else ROWS
    terminal = Terminal(width, verbose, links, rows)
    return written(_parts(analysis, story_of(analysis, program), terminal), width, color)


def _parts(analysis: Analysis, story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    yield from _first_screen(analysis, story, terminal)
    yield from _table(story, terminal)
    if not terminal.verbose:
        yield from _sources(story, terminal)
    for section in _sections(analysis, story, terminal.verbose):
        blocks = list(section)
        if blocks and not isinstance(blocks[0], Fold):
            yield Text("")
        for block in blocks:
            yield from renderables(block, terminal.width)
    yield from _closing(story, terminal)


def _sections(analysis: Analysis, story: Story, verbose: bool) -> Iterator[Iterator[Block]]:
    yield analysis_report.raced(story, verbose)
    yield _run(story, verbose)
    if verbose or story.kernels_lead:
        yield analysis_report.kernels(story)
    yield analysis_report.compiled(story)
    yield analysis_report.phases(story)
    if verbose or story.host_leads:
        yield analysis_report.host_time(story)
    if verbose:
        yield analysis_report.details(story, analysis.step)
        yield analysis_report.in_states(analysis)


def _first_screen(analysis: Analysis, story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    above = [
        Text(_headline(analysis, terminal.width), style="dim"),
        Text.assemble((f"{story.verdict}. ", "bold"), _text(story.reason)),
    ]
    if story.run_leads:
        above.append(_text(story.run_sentence))
    if story.host_leads:
        above.append(_text(story.host_sentence))
    above += [Text.assemble(("! ", "bold yellow"), _text(sentence)) for sentence in story.lacking]
    above += [Text.assemble(("! ", "bold red"), story.races_sentence)] if story.races_sentence else []
    above += [_text(story.summary)] if story.summary else []
    above += [_arrow(sentence) for sentence in (story.nothing,) if sentence]
    yield from above
    yield from _remedies(story, terminal, SCREEN - _height(above, terminal.width))


def _height(parts: Sequence[RenderableType], width: int) -> int:
    return len(written(parts, width, False).splitlines()) if parts else 0


def _text(text: str, limit: int = 0) -> Text:
    return Text(printable(text, limit))


def _arrow(sentence: str) -> Text:
    return Text.assemble(("→ ", "bold green"), _text(sentence))


def _headline(analysis: Analysis, width: int) -> str:
    """Return the headline, without the device's name if it doesn't fit on one line otherwise."""
    parts = [_trace_headline(analysis, device) for device in (True, False)]
    return next((headline for headline in parts if cell_len(headline) <= width), parts[0])


def _trace_headline(analysis: Analysis, device: bool) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [PurePath(info.path).name or info.path]
    if info.devices and device:
        parts.append(_devices(info.devices))
    if info.world_size and info.world_size > 1:
        parts.append(f"rank {info.rank} of {info.world_size}")
    steps = f"{s.count} step{'s' if s.count != 1 else ''}" if analysis.trace.steps else "no steps marked"
    if not s.observed_us:
        return printable(" · ".join([*parts, steps]))
    steps += " of " if analysis.trace.steps else ", "
    return printable(" · ".join([*parts, f"{steps}{step_time(analysis)}"]))


def _devices(names: Sequence[str]) -> str:
    count, name = len(names), names[0]
    if not name:
        return f"{count} device{'s' * (count != 1)}"
    return name if count == 1 else f"{count} × {name}"


def _remedies(story: Story, terminal: Terminal, room: int) -> Iterator[RenderableType]:
    """Yield the changes, one per line, with their fixes below as far as they fit; `-v` shows all."""
    entries = story.remedies if terminal.verbose else story.remedies[:WORST]
    then = [_arrow(story.then)] if story.then else []
    if not entries:
        yield from then
        return
    lines = [_remedy(entry, story, terminal) for entry in entries]
    room -= 1 + _height(then, terminal.width)
    if not terminal.verbose:
        most = room + max(
            0, (_FULL_WIDTH - terminal.width) // 10
        )  # the same words take more lines on a narrow terminal
        least = _fitting(entries[:1], 0, terminal.width - 4)
        while len(entries) > 1 and _height([_list_table(lines, entries, least)], terminal.width) > most:
            entries, lines = entries[:-1], lines[:-1]
    more = len(story.remedies) - len(entries)
    left = f" ({more} more with -v)" if more else ""
    yield Text(f"{story.to_do}{left}:", "bold")
    room -= _height([_list_table(lines, entries, {})], terminal.width)
    room += max(0, (_FULL_WIDTH - terminal.width) // 10)
    fixes = {t.number: t.fix for t in entries} if terminal.verbose else _fitting(entries, room, terminal.width - 4)
    yield _list_table(lines, entries, fixes)
    yield from then


def _fitting(entries: Sequence[RemedyText], room: int, width: int) -> dict[int, str]:
    """Return the sentences of those fixes that fit, by number; at least the first of the first."""
    fixes: dict[int, str] = {}
    for entry in entries:
        fix = fitting(printable(entry.fix), room, width, "-v", least=int(entry is entries[0]))
        room -= height(fix, width)
        if fix:
            fixes[entry.number] = fix
    return fixes


def _list_table(lines: Sequence[Text], entries: Sequence[RemedyText], fixes: dict[int, str]) -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="ellipsis")
    for line, entry in zip(lines, entries, strict=True):
        grid.add_row(f" {entry.number}. ", line)
        if fix := fixes.get(entry.number):
            grid.add_row("", Text(printable(fix), "dim"))
    return grid


def _remedy(remedy: RemedyText, story: Story, terminal: Terminal) -> Text:
    """Return a change as a line: `432 µs (9%), 468 µs after the fixes above: .item() waits (train.py:52)`."""
    doubt = remedy.doubt if terminal.verbose else remedy.left
    line = Text.assemble(
        (remedy.saves, "bold"), f", {printable(doubt)}" if doubt else "", ": ", _text(remedy.what, 160)
    )
    first = next((f for f in story.findings if remedy.members and f.id == remedy.members[0].id), None)
    where = next(iter(_circumstances(first, terminal)), Text()) if first else _text(remedy.where, 60)
    if where:
        line.append(" (").append_text(where).append(")")
    return line


def _table(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    little = [] if terminal.rows is None else _little(story)
    shown = [entry for entry in story.ranked if entry not in little][: terminal.rows]
    if not shown:
        return
    rows = [_row(entry, terminal) for entry in shown]
    yield Text("")
    if not story.costed or any(entry.saves != NOT_PROJECTED for entry in shown):
        yield Text(story.ranking, style="dim")
    if story.costed:
        yield _one_line_each(rows, terminal.width) or _two_lines_each(rows, terminal.width)
    else:
        yield _without_costs(rows, terminal.width)
    if little:
        each, waits = little[0].saves, sum(entry.of.wait_us for entry in little)
        which = causes.title_of([entry.of for entry in little])
        summary = f"{which}. Each saves {each}; together they wait {duration(waits)}."
        yield Padding(Text(summary, "dim"), (0, 0, 0, 1))
    if len(story.ranked) > len(shown):
        yield Text(f" {len(story.ranked) - len(shown)} more: -v", style="bold")
    if story.stop:
        yield Text("")
        yield _arrow(story.stop)


def _little(story: Story) -> list[FindingText]:
    """Return the findings that one line stands for: many that save too little, below others that save more."""
    projected = [entry for entry in story.findings if entry.of.recoverable_us is not None and not entry.share]
    more = any(entry.share for entry in story.findings) or bool(story.habits)
    return projected if more and len(projected) >= causes.MANY else []


class _Row(msgspec.Struct, frozen=True):
    saves: Text
    doubt: str
    """Range of the saving; empty where it isn't measurable."""
    waits: str
    """Wait; empty for a habit."""
    title: Text
    rule: str
    where: tuple[Text, ...]


def _row(entry: FindingText | HabitText, terminal: Terminal) -> _Row:
    saves, title = Text(entry.saves, _COLORS[entry.severity]), _text(entry.title, 160)
    if isinstance(entry, HabitText):
        return _Row(saves, entry.doubt, "", title, entry.rule, (_text(entry.where, 60),))
    saves.append(f" ({entry.share})" if entry.share else "")
    return _Row(
        saves, entry.doubt if entry.share else "", entry.waits, title, entry.rule, _circumstances(entry, terminal)
    )


def _circumstances(finding: FindingText, terminal: Terminal) -> tuple[Text, ...]:
    f = finding.of
    parts = [_place(f, terminal), _text(" › ".join(f.scope[-1:]), 60), *map(Text, finding.circumstances)]
    return tuple(part for part in parts if part)


def _headed(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in names:
        number = name in ("saves alone", "waits")
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="ellipsis")
    return table


def _one_line_each(rows: Sequence[_Row], width: int) -> Table | None:
    """Return a table with one line per row; None where one doesn't fit."""
    cells = [(row.saves, Text(row.waits or "–"), row.title, Text(row.rule), _join(row.where, width)) for row in rows]
    names = ("saves alone", "waits", "what", "rule", "where")
    columns = zip(names, *cells, strict=True)
    widest = [max(cell_len(name), *(text.cell_len for text in column)) for name, *column in columns]
    if width < WIDE or sum(widest) + _GAP * len(names) > width:
        return None
    table = _headed(*names)
    for row in cells:
        table.add_row(*row)
    return table


def _two_lines_each(rows: Sequence[_Row], width: int) -> Table:
    table = _headed("saves alone", "what; rule, where, wait")
    room = width - _GAP * 2 - max(cell_len("saves alone"), *(row.saves.cell_len for row in rows))
    for row in rows:
        waits = Text(f"waits {row.waits}" if row.waits else "")
        table.add_row(row.saves, Group(row.title, _join((Text(row.rule), *row.where, waits, Text(row.doubt)), room)))
    return table


def _without_costs(rows: Sequence[_Row], width: int) -> Table:
    table = _headed("what; rule, where, how often")
    for row in rows:
        where = _join((Text(row.rule), *row.where), width - 2 * _GAP)
        table.add_row(Group(row.title, Padding(where, (0, 0, 0, _GAP))))
    return table


def _join(parts: Sequence[Text], width: int) -> Text:
    """Return the parts separated by points, with line breaks between parts."""
    line = Text()
    left = width
    for part in parts:
        if line and part and part.cell_len + 3 > left:
            line.append(" ·\n")
            left = width
        elif line and part:
            line.append(" · ")
            left -= 3
        line.append_text(part)
        left -= part.cell_len
    return line


def _sources(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    """Yield the flagged lines of the first changes, each once; without changes, of the first finding."""
    listed = [m.id for entry in story.remedies[:WORST] for m in entry.members]
    excerpted = {entry.id: entry for entry in story.findings if entry.of.excerpt}
    chosen = [excerpted[id] for id in listed if id in excerpted] if story.remedies else list(excerpted.values())[:1]
    shown: list[Excerpt] = []
    for entry in chosen:
        excerpt = entry.of.excerpt
        if excerpt and excerpt not in shown and len(shown) < WORST:
            shown.append(excerpt)
            yield Text("")
            yield Text.assemble(" ", _place(entry.of, terminal), f"  {entry.rule}")
            for block in analysis_report.excerpt(excerpt):
                yield from renderables(block, terminal.width)


def _run(story: Story, verbose: bool) -> Iterator[Block]:
    if story.run_sentence and verbose and not story.run_leads:
        yield Sentence(story.run_sentence)
    if story.run:
        yield Heading("Between the steps:")
        rows = (Item((strong(row.name), f" {row.where}: {row.verdict}"), row.waits) for row in story.run)
        yield Items(tuple(rows))


def _closing(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(printable(story.steps_found), style="dim")
    if story.hidden:
        yield Text(story.hidden)
    if not terminal.verbose and story.ranked:
        yield Text("-v explains each one: why it waits, what to do instead, and when to leave it.", style="dim")
    yield Text.assemble("Next: ", (printable(shlex.join(story.next)), "bold"), overflow="ignore")


def _place(f: Finding, terminal: Terminal) -> Text:
    """Return the line as its file's name and number, a library's with its package; a link if the file is at hand."""
    text = Text(_where(f), "blue")
    if text and terminal.links and f.excerpt:
        text.stylize(Style(link=PurePath(f.excerpt.path).as_uri()))
    return text


def _where(f: Finding) -> str:
    library = f.in_library
    user, inner = _short(f.source), _short(library, in_package=True)
    if not (user and inner):
        return user or inner
    return f"{inner}, from {user}" if f.in_loop else f"{user}, inside {inner}"


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
