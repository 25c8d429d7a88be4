"""Annotate the flagged source files: at each line what it waits, how long the device is idle after it, what it saves.

Only the lines that findings name, and those around them, are shown, as the excerpts of the findings hold them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import msgspec

from syncscan.model.finding import Source
from syncscan.model.libraries import path_in_package
from syncscan.report import source
from syncscan.report.phrases import line, real
from syncscan.report.shown_names import shown
from syncscan.report.story import FindingText
from syncscan.report.units import duration

MAX_FILES = 12
"""Files that are shown, those that wait longest."""
MAX_LINES = 300
"""Lines of a file that are shown."""
AWAY = "source not at hand"
"""Note on a file that can't be read here; --source-root says where it is."""


class AnnotatedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of source, with means per step of the findings there; their texts are empty without a finding."""

    number: int
    text: str
    wait: str = ""
    idle: str = ""
    saves: str = ""
    findings: tuple[int, ...] = ()
    """Numbers of the findings at this line."""
    after_gap: bool = False
    """Whether lines are left out above it."""


class AnnotatedFile(msgspec.Struct, frozen=True, kw_only=True):
    place: str
    note: str
    """Why its text is missing, or may not be that of the recording; empty for neither."""
    wait: str
    lines: tuple[AnnotatedLine, ...]
    more: int
    """Lines that are left out at the end."""


def files(findings: Sequence[FindingText]) -> list[AnnotatedFile]:
    """Return the flagged files, the one that waits longest first."""
    waiting = {f.id for f in real([entry.of for entry in findings])}
    by_file: defaultdict[str, list[FindingText]] = defaultdict(list)
    for entry in findings:
        place = _flagged(entry)
        if place is not None and entry.id in waiting:
            by_file[place.file].append(entry)
    longest = sorted(by_file, key=lambda file: -sum(entry.of.wait_us for entry in by_file[file]))
    return [_file(file, by_file[file]) for file in longest[:MAX_FILES]]


def _flagged(entry: FindingText) -> Source | None:
    return entry.of.in_library if entry.of.in_loop else entry.of.source


def _file(file: str, entries: Sequence[FindingText]) -> AnnotatedFile:
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
    return AnnotatedFile(
        place=shown(path_in_package(file), 200),
        note=source.NEWER.strip("()") if newer else "" if texts else AWAY,
        wait=duration(sum(entry.of.wait_us for entry in entries)),
        lines=tuple(
            _line(number, texts.get(number, ""), at.get(number, ()), number - 1 not in numbers)
            for number in numbers[:MAX_LINES]
        ),
        more=max(0, len(numbers) - MAX_LINES),
    )


def _expanded(lines: Sequence[str]) -> list[str]:
    return [shown(text.expandtabs(4).rstrip(), source.LONGEST) for text in lines]


def _gain(entry: FindingText) -> float:
    return -1.0 if entry.of.recoverable_us is None else entry.of.recoverable_us


def _line(number: int, text: str, entries: Sequence[FindingText], after_gap: bool) -> AnnotatedLine:
    if not entries:
        return AnnotatedLine(number=number, text=text, after_gap=after_gap)
    best = max(entries, key=_gain)
    several = f", the largest of {len(entries)}" if len(entries) > 1 and best.of.recoverable_us is not None else ""
    return AnnotatedLine(
        number=number,
        text=text,
        wait=duration(sum(entry.of.wait_us for entry in entries)),
        idle=duration(sum(entry.of.bubble_us for entry in entries)),
        saves=f"{best.saves}{several}",
        findings=tuple(entry.number for entry in entries),
        after_gap=after_gap,
    )
