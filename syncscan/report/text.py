"""From an Analysis to a terminal report: a first screen of ten lines, a table of ten rows, and the rest on demand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from textwrap import wrap

import msgspec
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from syncscan.facts.phases import PhaseSummary
from syncscan.model.analysis import Analysis
from syncscan.model.finding import Excerpt, Finding, Severity, Source
from syncscan.model.libraries import path_in_package
from syncscan.report import races
from syncscan.report.details import details, flagged_lines
from syncscan.report.habits import ToldHabit
from syncscan.report.host_text import host_tables
from syncscan.report.printable import printable
from syncscan.report.remedies import ToldRemedy
from syncscan.report.story import NOT_PROJECTED, Story, ToldFinding, story_of
from syncscan.report.terminal import written
from syncscan.report.units import duration

_COLORS = {Severity.HIGH: "bold red", Severity.MEDIUM: "yellow", Severity.LOW: "cyan", Severity.INFO: "dim"}
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z])")
PHASES = 12
"""Phases and batches that are shown; JSON has them all."""
SCREEN = 10
"""Lines of the first screen: as long as there is room, it says how to change what it lists."""
_FULL_WIDTH = 120
"""At which the first screen's lines are counted; of narrower ones each ten columns less may cost one."""
WORST = 3
"""How many things to change the first screen lists."""
ROWS = 10
"""How many findings and habits the table shows unasked."""
WIDE = 100
"""Columns from which a finding may have its row to itself; below it takes two lines."""
_GAP = 2
"""Columns between two of a table."""


class Terminal(msgspec.Struct, frozen=True):
    """Where the text goes, and how much of it is wanted."""

    width: int
    verbose: bool
    links: bool
    """Whether a place in a file at hand is a hyperlink."""
    rows: int | None
    """Of the table; None for all."""


def render(
    analysis: Analysis,
    verbose: int = 0,
    width: int = 100,
    color: bool = False,
    links: bool = False,
    everything: bool = False,
) -> str:
    """The report as text.

    Args:
        verbose: 0 for first screen, table and flagged lines, 1 for why, fix and evidence of each finding and habit too.
        width: of the terminal, in characters.
        color: whether to write colours.
        links: whether to write hyperlinks (OSC 8), which need colours.
        everything: whether the table has all rows.
    """
    rows = None if everything or analysis.view.top is not None else ROWS
    terminal = Terminal(width, bool(verbose), links, rows)
    return written(_parts(analysis, story_of(analysis), terminal), width, color)


def _parts(analysis: Analysis, story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    yield from _first_screen(analysis, story, terminal)
    yield from _table(story, terminal)
    if not terminal.verbose:
        yield from _sources(story, terminal)
    yield from _races(story, terminal)
    yield from _run(story, terminal)
    if story.phases:
        yield _phases(story.phases)
    if terminal.verbose or story.host_leads:
        yield from host_tables(story, terminal.width)
    if terminal.verbose:
        yield from details(story, analysis.step)
    yield from _closing(story, terminal)


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


def _text(said: str, limit: int = 0) -> Text:
    return Text(printable(said, limit))


def _arrow(sentence: str) -> Text:
    return Text.assemble(("→ ", "bold green"), _text(sentence))


def _headline(analysis: Analysis, width: int) -> str:
    """On one line where it can be: the device's name is the first to go."""
    parts = [_told_of_trace(analysis, device) for device in (True, False)]
    return next((said for said in parts if cell_len(said) <= width), parts[0])


def _told_of_trace(analysis: Analysis, device: bool) -> str:
    info, s = analysis.trace.info, analysis.step
    parts = [PurePath(info.path).name or info.path]
    if info.devices and device:
        parts.append(_devices(info.devices))
    if info.world_size and info.world_size > 1:
        parts.append(f"rank {info.rank} of {info.world_size}")
    steps = f"{s.count} step{'s' if s.count != 1 else ''}" if analysis.trace.steps else "no steps marked"
    if not s.observed_us:
        return printable(" · ".join([*parts, steps]))
    known = f" ({duration(s.unprofiled_us)} unprofiled)" if s.unprofiled_us else ""
    steps += " of " if analysis.trace.steps else ", "
    return printable(" · ".join([*parts, f"{steps}{duration(s.observed_us)}{known}"]))


def _devices(names: Sequence[str]) -> str:
    """`8 × NVIDIA H200`; a trace may have devices without a name."""
    count, name = len(names), names[0]
    if not name:
        return f"{count} device{'s' * (count != 1)}"
    return name if count == 1 else f"{count} × {name}"


def _remedies(story: Story, terminal: Terminal, room: int) -> Iterator[RenderableType]:
    """What to change, each on its line; below it how, as far as there is room: all of it stands with `-v`."""
    found = story.remedies if terminal.verbose else story.remedies[:WORST]
    then = [_arrow(story.then)] if story.then else []
    if not found:
        yield from then
        return
    lines = [_remedy(told, story, terminal) for told in found]
    room -= 1 + _height(then, terminal.width)
    if not terminal.verbose:
        most = room + max(
            0, (_FULL_WIDTH - terminal.width) // 10
        )  # the same words are more lines where these are short
        while len(found) > 1 and _height([_listed(lines, found, {})], terminal.width) >= most:
            found, lines = found[:-1], lines[:-1]
    more = len(story.remedies) - len(found)
    left = f" ({more} more with -v)" if more else ""
    yield Text(f"{story.to_do}{left}:", "bold")
    room -= _height([_listed(lines, found, {})], terminal.width)
    fixes = {t.number: t.fix for t in found} if terminal.verbose else _fitting(found, room, terminal.width - 4)
    yield _listed(lines, found, fixes)
    yield from then


def _fitting(found: Sequence[ToldRemedy], room: int, width: int) -> dict[int, str]:
    """The first sentences of the fixes for which there is room, by number; the first in one line at least."""
    fixes: dict[int, str] = {}
    for told in found:
        sentence = printable(_SENTENCE.split(told.fix, 1)[0])
        lines = wrap(sentence, width, break_long_words=False)
        if told is found[0]:
            lines = wrap(sentence, width, max_lines=max(room, 1), placeholder=" …", break_long_words=False)
        room -= len(lines)
        if room >= 0 or told is found[0]:
            fixes[told.number] = " ".join(lines)
    return fixes


def _listed(lines: Sequence[Text], found: Sequence[ToldRemedy], fixes: dict[int, str]) -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="ellipsis")
    for line, told in zip(lines, found, strict=True):
        grid.add_row(f" {told.number}. ", line)
        if fix := fixes.get(told.number):
            grid.add_row("", Text(printable(fix), "dim"))
    return grid


def _remedy(told: ToldRemedy, story: Story, terminal: Terminal) -> Text:
    """`432 µs (9%), 468 µs after those above: .item() waits for a number (train.py:52)`."""
    doubt = told.doubt if terminal.verbose else told.left
    line = Text.assemble((told.saves, "bold"), f", {printable(doubt)}" if doubt else "", ": ", _text(told.what, 160))
    first = next((f for f in story.findings if told.members and f.id == told.members[0].id), None)
    where = next(iter(_circumstances(first, terminal)), Text()) if first else _text(told.where, 60)
    if where:
        line.append(" (").append_text(where).append(")")
    return line


def _table(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    shown = story.ranked[: terminal.rows]
    if not shown:
        return
    rows = [_row(told, terminal) for told in shown]
    yield Text("")
    if not story.costed or any(told.saves != NOT_PROJECTED for told in shown):
        yield Text(story.ranking, style="dim")
    if story.costed:
        yield _one_line_each(rows, terminal.width) or _two_lines_each(rows, terminal.width)
    else:
        yield _without_costs(rows, terminal.width)
    if len(story.ranked) > len(shown):
        yield Text(f" {len(story.ranked) - len(shown)} more: --all", style="bold")


def _races(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    """Yield the lines of each race and the fix, and why with `-v`."""
    shown = story.races if terminal.verbose else story.races[: races.SHOWN]
    if not shown:
        return
    yield Text(f"\n{races.TITLE}", "bold")
    for race in shown:
        often = "" if race.count == 1 else f" ({race.count} times)"
        yield Padding(Text.assemble((races.lines(race), "bold red"), f"{often}: {race.text.title}."), (0, 0, 0, 1))
        text = f"{race.text.why} {race.text.fix}" if terminal.verbose else race.text.fix
        yield Padding(Text(text, "dim"), (0, 0, 0, 3))
    if len(story.races) > len(shown):
        yield Text(f" {len(story.races) - len(shown)} more: -v", style="bold")


class _Row(msgspec.Struct, frozen=True):
    """What the table says of a finding or a habit."""

    saves: Text
    doubt: str
    """Between which limits; empty where it saves nothing that can be measured."""
    waits: str
    """Empty of a habit, which is no wait."""
    title: Text
    rule: str
    where: tuple[Text, ...]


def _row(told: ToldFinding | ToldHabit, terminal: Terminal) -> _Row:
    saves, title = Text(told.saves, _COLORS[told.severity]), _text(told.title, 160)
    if isinstance(told, ToldHabit):
        return _Row(saves, told.doubt, "", title, told.rule, (_text(told.where, 60),))
    saves.append(f" ({told.share})" if told.share else "")
    return _Row(saves, told.doubt if told.share else "", told.waits, title, told.rule, _circumstances(told, terminal))


def _circumstances(told: ToldFinding, terminal: Terminal) -> tuple[Text, ...]:
    """Place, scope, backward, how often."""
    f = told.of
    parts = [_place(f, terminal), _text(" › ".join(f.where.scope[-1:]), 60), *map(Text, told.circumstances)]
    return tuple(part for part in parts if part)


def _headed(*names: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in names:
        number = name in ("saves alone", "waits")
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="ellipsis")
    return table


def _one_line_each(rows: Sequence[_Row], width: int) -> Table | None:
    """None where a line is too short for one of them."""
    cells = [(row.saves, Text(row.waits or "–"), row.title, Text(row.rule), _joined(row.where, width)) for row in rows]
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
    table = _headed("saves alone", "what; rule, where, how long it waits")
    room = width - _GAP * 2 - max(cell_len("saves alone"), *(row.saves.cell_len for row in rows))
    for row in rows:
        waits = Text(f"waits {row.waits}" if row.waits else "")
        table.add_row(row.saves, Group(row.title, _joined((Text(row.rule), *row.where, waits, Text(row.doubt)), room)))
    return table


def _without_costs(rows: Sequence[_Row], width: int) -> Table:
    table = _headed("what; rule, where, how often it waits")
    for row in rows:
        where = _joined((Text(row.rule), *row.where), width - 2 * _GAP)
        table.add_row(Group(row.title, Padding(where, (0, 0, 0, _GAP))))
    return table


def _joined(parts: Sequence[Text], width: int) -> Text:
    """Parts with points between them; a line ends between two parts where it can."""
    said = Text()
    left = width
    for part in parts:
        if said and part and part.cell_len + 3 > left:
            said.append(" ·\n")
            left = width
        elif said and part:
            said.append(" · ")
            left -= 3
        said.append_text(part)
        left -= part.cell_len
    return said


def _sources(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    """The flagged lines of what to change first, each once; where nothing is to be changed, of the first finding."""
    listed = [m.id for told in story.remedies[:WORST] for m in told.members]
    found = {told.id: told for told in story.findings if told.of.excerpt}
    chosen = [found[id] for id in listed if id in found] if story.remedies else list(found.values())[:1]
    shown: list[Excerpt] = []
    for told in chosen:
        excerpt = told.of.excerpt
        if excerpt and excerpt not in shown and len(shown) < WORST:
            shown.append(excerpt)
            yield Text("")
            yield Text.assemble(" ", _place(told.of, terminal), f"  {told.rule}")
            yield flagged_lines(excerpt)


def _run(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    """What of the run isn't its steps, each with what it comes to and what waits in it."""
    if story.run_sentence and terminal.verbose and not story.run_leads:
        yield Text("")
        yield _text(story.run_sentence)
    if not story.run:
        return
    yield Text("")
    yield Text("Between the steps:", "bold")
    for row in story.run:
        yield Text.assemble(
            f" {row.share} ", (printable(row.name, 60), "bold"), f" {printable(row.where, 80)}: ", _text(row.verdict)
        )
        yield from (Padding(_text(said), (0, 0, 0, 6)) for said in row.waits)
        if row.more:
            yield Padding(Text(f"{row.more} more: syncscan analyze {printable(row.trace, 120)}", "dim"), (0, 0, 0, 6))


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


def _closing(story: Story, terminal: Terminal) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(printable(story.steps_found), style="dim")
    if story.hidden:
        yield Text(story.hidden)
    if not terminal.verbose and story.ranked:
        yield Text("-v shows why each one waits, what to do instead, and when to leave it alone.", style="dim")
    yield Text.assemble("Next: ", (printable(shlex.join(story.next)), "bold"), overflow="ignore")


def _place(f: Finding, terminal: Terminal) -> Text:
    """The line with its file's name alone, and the library's with its package; a link where the file is at hand."""
    said = Text(_where(f), "blue")
    if said and terminal.links and f.excerpt:
        said.stylize(Style(link=PurePath(f.excerpt.path).as_uri()))
    return said


def _where(f: Finding) -> str:
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
