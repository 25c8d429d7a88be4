"""Annotate the flagged source files: at each line what it waits, how long the device is idle after it, what it saves.

Only the lines that findings name, and those around them, are shown, as the excerpts of the findings hold them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from syncscan.model.finding import Source
from syncscan.model.libraries import path_in_package
from syncscan.report import source
from syncscan.report.blocks import Block, Grid, GridColumn, Heading, Sentence, Words, code, strong
from syncscan.report.phrases import line, real
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText
from syncscan.report.units import duration

MAX_FILES = 12
"""Files that are shown, those that wait longest."""
MAX_LINES = 300
"""Lines of a file that are shown, except on a page."""
COLUMNS = (*(GridColumn(name, right=True) for name in ("wait", "idle after", "saves", "line")), GridColumn("source"))
AWAY = "source not at hand"
"""Note on a file that can't be read here; --source-root says where it is."""


def blocks(findings: Sequence[FindingText]) -> Iterator[Block]:
    """Yield the flagged files, the one that waits longest first."""
    waiting = {f.id for f in real([entry.of for entry in findings])}
    by_file: defaultdict[str, list[FindingText]] = defaultdict(list)
    for entry in findings:
        place = _flagged(entry)
        if place is not None and entry.of.id in waiting:
            by_file[place.file].append(entry)
    longest = sorted(by_file, key=lambda file: -sum(entry.of.wait_us for entry in by_file[file]))
    if longest:
        yield Sentence("Means per step; what a line saves, it saves alone.", "dim")
    for file in longest[:MAX_FILES]:
        yield from _file(file, by_file[file])


def _flagged(entry: FindingText) -> Source | None:
    return entry.of.in_library if entry.of.in_loop else entry.of.source


def _file(file: str, entries: Sequence[FindingText]) -> Iterator[Block]:
    texts: dict[int, str] = {}
    at: defaultdict[int, list[FindingText]] = defaultdict(list)
    for entry in entries:
        excerpt, place = entry.of.excerpt, _flagged(entry)
        assert place is not None
        at[excerpt.marked[0] if excerpt and excerpt.marked else line(place)].append(entry)
        if excerpt:
            texts |= dict(enumerate(_expanded(excerpt.lines), excerpt.first))
    numbers = sorted({*texts, *at})
    newer = any(entry.of.excerpt and entry.of.excerpt.newer for entry in entries)
    note = source.NEWER.strip("()") if newer else "" if texts else AWAY
    yield Heading(
        (code(shown(path_in_package(file), 200)), f" waits {duration(sum(e.of.wait_us for e in entries))}"), 3
    )
    if note:
        yield Sentence(note, "dim")
    yield Grid(COLUMNS, tuple(_row(number, texts.get(number, ""), at.get(number, ())) for number in numbers), MAX_LINES)


def _expanded(lines: Sequence[str]) -> list[str]:
    return [shown(text.expandtabs(4).rstrip(), source.LONGEST) for text in lines]


def _row(number: int, text: str, entries: Sequence[FindingText]) -> tuple[Words, ...]:
    if not entries:
        return "", "", "", str(number), code(text)
    best = max(entries, key=lambda entry: -1.0 if entry.of.recoverable_us is None else entry.of.recoverable_us)
    several = f", the largest of {len(entries)}" if len(entries) > 1 and best.of.recoverable_us is not None else ""
    wait, idle = (duration(sum(getattr(entry.of, field) for entry in entries)) for field in ("wait_us", "bubble_us"))
    return wait, idle, f"{best.saves}{several}", strong(str(number)), code(text)
