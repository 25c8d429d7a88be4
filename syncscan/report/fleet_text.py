"""Render a Fleet for a terminal: ten lines on who delays the job and what to change, then ranks and findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from syncscan.model.fleet import Fleet
from syncscan.report.fixes import fitting
from syncscan.report.fleet_story import FleetStory, JobFindingText, place, story_of
from syncscan.report.printable import printable
from syncscan.report.terminal import written

WORST = 3
"""Changes that the first screen lists."""
ROWS = 20
"""Findings in the table; JSON has all."""
UNREAD = 20
"""Unreadable traces that are listed."""
SCREEN = 10
"""Lines of the first screen; room that is left shows how to make the first change."""
_HEADS = ("delays\njob", "waits for\nothers", "waits for\ndevice", "idle\nafter", "exposed\ncomm.", "gains\nalone")


def render(fleet: Fleet, width: int = 100, color: bool = False) -> str:
    """Return the report of a job as text.

    Args:
        width: the width of the terminal, in characters.
        color: whether to write colors.
    """
    return written(_parts(story_of(fleet), width), width, color)


def _parts(story: FleetStory, width: int) -> Iterator[RenderableType]:
    yield from _first_screen(story, width)
    yield from _ranks(story)
    yield from _findings(story)
    yield from _wrong(story)
    yield from _closing(story)


def _text(text: str, style: str = "", limit: int = 0) -> Text:
    return Text(printable(text, limit), style)


def _first_screen(story: FleetStory, width: int) -> Iterator[RenderableType]:
    above = [
        _text(" · ".join(story.headline), "dim"),
        Text.assemble((f"{printable(story.verdict)}. ", "bold"), _text(story.reason, limit=600)),
        *([Text.assemble(("! ", "bold yellow"), _text(story.missing))] if story.missing else []),
        _text(story.summary),
    ]
    below = [Text.assemble(("→ ", "bold green"), _text(sentence, limit=300)) for sentence in story.then[:WORST]]
    if story.wrong:
        below.append(Text.assemble(("≠ ", "bold yellow"), _text(story.wrong[0], limit=300)))
    yield from above
    if story.remedies:
        title, listed = Text("What to change, by the gain of the whole job:", "bold"), story.remedies[:WORST]
        lines = written([*above, title, _remedies(listed), *below], width, False).count("\n")
        yield title
        first = listed[0].of.first
        fix = fitting(
            printable(first.fix), SCREEN - lines, width - 4, f"syncscan explain {first.rule}", int(lines < SCREEN)
        )
        yield _remedies(listed, fix)
    yield from below


def _wrong(story: FleetStory) -> Iterator[RenderableType]:
    """Yield the sentences that the first screen leaves out."""
    if story.wrong[1:]:
        yield Text("")
        yield Text("What else a single rank's trace gets wrong:", "bold")
        yield from (Padding(_text(sentence, limit=300), (0, 0, 0, 1)) for sentence in story.wrong[1:ROWS])


def _remedies(findings: tuple[JobFindingText, ...], fix: str = "") -> Table:
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="ellipsis")
    for number, t in enumerate(findings, 1):
        gain = "; ".join(part for part in (t.share, t.doubt) if part)
        line = Text.assemble((t.saves, "bold"), f" ({gain})" if gain else "", f", {t.on}: ")
        grid.add_row(f" {number}. ", line.append_text(_text(_name_text(t), limit=200)))
        if number == 1 and fix:
            grid.add_row("", Text(fix, "dim"))
    return grid


def _name_text(t: JobFindingText) -> str:
    where = place(t.of.first) or t.where
    return f"{t.of.first.title} ({where})" if where else t.of.first.title


def _ranks(story: FleetStory) -> Iterator[RenderableType]:
    yield Text("")
    if story.ranks:
        yield Text("Ranks (mean per step):", "bold")
        yield _rank_table(story)
    if story.quantiles:
        yield Text("All ranks (mean per step):" if story.ranks else "Ranks (mean per step):", "bold")
        yield _quantile_table(story)


def _rank_table(story: FleetStory) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("rank", justify="right", no_wrap=True, vertical="bottom")
    for head in _HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("late by", vertical="bottom")
    for rank in story.ranks:
        style = "bold" if rank.why else ""
        why = f"{rank.why}{f' (rank by {rank.numbered_from})' if rank.numbered_from else ''}"
        table.add_row(str(rank.rank), *rank.figures, why.strip(), style=style)
    return table


def _quantile_table(story: FleetStory) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("")
    for head in ("least", "median", "95%", "most", "rank"):
        table.add_column(head, justify="right", no_wrap=True)
    for figure in story.quantiles:
        table.add_row(figure.name, figure.least, figure.median, figure.high, figure.most, str(figure.rank))
    return table


def _findings(story: FleetStory) -> Iterator[RenderableType]:
    if not story.findings:
        return
    yield Text("")
    yield Text("Syncs of all ranks, by the gain of the whole job:", "bold")
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("gains the job", justify="right", no_wrap=True)
    table.add_column("waits", justify="right", no_wrap=True)
    table.add_column("what; ranks, rule, where, range")
    for t in story.findings[:ROWS]:
        saves = f"{t.saves} ({t.share})" if t.share else t.saves
        beside = " · ".join(p for p in (t.on, t.of.first.rule, t.where, t.doubt) if p)
        intended = " (intended)" if t.of.first.intended else ""
        what = Group(_text(f"{t.of.first.title}{intended}", limit=160), _text(beside, "dim", 240))
        table.add_row(saves, t.waits, what)
    yield table
    if len(story.findings) > ROWS:
        yield Text(f" {len(story.findings) - ROWS} more: --format json", "bold")


def _closing(story: FleetStory) -> Iterator[RenderableType]:
    yield Text("")
    for path, reason in story.unread[:UNREAD]:
        yield Text.assemble(("not read: ", "yellow"), _text(f"{path}: {reason}", limit=300))
    if len(story.unread) > UNREAD:
        yield Text(f"not read: {len(story.unread) - UNREAD} more traces", "yellow")
    yield from (_text(f"note: {note}", "dim", 400) for note in story.notes)
    if story.next:
        yield Text.assemble("Next: ", (printable(shlex.join(story.next)), "bold"), overflow="ignore")
