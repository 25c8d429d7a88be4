"""Place the races of a dry run or a recording in the program, and give each an id that the next run has too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from syncscan.attribute.candidate_lines import candidates
from syncscan.attribute.excerpts import at_hand
from syncscan.attribute.source_file import OWN, SourceFiles
from syncscan.attribute.source_lines import parse, pick
from syncscan.attribute.start_folder import path_in_program, program_root
from syncscan.facts.frames import frames_around
from syncscan.facts.paths import Paths
from syncscan.facts.refills import refills_of
from syncscan.model.capture import CaptureTable, Frame
from syncscan.model.finding import Confidence
from syncscan.model.race import Race, RaceKind, RaceLine
from syncscan.model.short_id import short_id
from syncscan.model.trace import Trace


def races_of(trace: Trace, files: SourceFiles = OWN) -> tuple[Race, ...]:
    """Return the races that a dry run met, or that a recording shows, the most frequent first.

    Args:
        trace: a dry run, or a recording.
        files: source files that may be read, to find lines that weren't recorded.
    """
    return races_met(trace.info.capture) if trace.info.capture.pretended else _recorded(trace, at_hand(trace, files))


def races_met(capture: CaptureTable) -> tuple[Race, ...]:
    """Return the races that a dry run met, the most frequent first."""
    stacks = [tuple(capture.lines.stack(number)) for number in range(len(capture.lines.stacks))]
    root = program_root(stacks or [(_frame(record.second),) for record in capture.races])
    lines = [(_line(r.first, root) if r.first else None, _line(r.second, root), r) for r in capture.races]
    return _named((record.kind, first, second, record.count) for first, second, record in lines)


def _named(
    met: Iterable[tuple[RaceKind, RaceLine | None, RaceLine, int]], confidence: Confidence = Confidence.HIGH
) -> tuple[Race, ...]:
    counts: Counter[tuple[object, ...]] = Counter()
    races = []
    for kind, first, second, count in met:
        site = (kind.value, first and (first.file, first.function), second.file, second.function)
        counts[site] += 1  # lines move, and so a second race of a function is the second one there
        name = short_id((*site, counts[site]))
        races.append(Race(id=name, kind=kind, first=first, second=second, count=count, confidence=confidence))
    return tuple(sorted(races, key=lambda race: -race.count))


def _recorded(trace: Trace, files: SourceFiles) -> tuple[Race, ...]:
    """Return the races that a recording shows: host memory that is filled again while a copy from it still runs."""
    refills = refills_of(trace)
    rows = np.array([row for refill in refills for row in refill[:2]], np.int64)
    s = trace.slices
    stacks = [parse(names) for names in frames_around(trace, s.track[rows], s.ts[rows], s.end[rows])]
    root = program_root(stacks)
    lines = [_placed(trace, row, frames, root, files) for row, frames in zip(rows.tolist(), stacks, strict=True)]
    return _named(
        (
            (RaceKind.WRITE_BEFORE_COPY, lines[2 * n], lines[2 * n + 1], refill.times)
            for n, refill in enumerate(refills)
        ),
        Confidence.MEDIUM,
    )


def _placed(trace: Trace, row: int, frames: tuple[Frame, ...], root: str, files: SourceFiles) -> RaceLine:
    """Return the line of an op in the program's innermost function: the one that calls it, if there is one alone."""
    source = pick(frames, exact=False).user
    if source is None:
        names = trace.kept(Paths).to(row).names
        return RaceLine("", 0, " > ".join((*names.scopes, *names.ops)))
    lines = candidates(source, (trace.name(row),), "", files)
    return _line((source.file, lines[0] if len(lines) == 1 else source.line, source.function), root)


def _line(at: tuple[str, int, str], root: str) -> RaceLine:
    file, line, function = at
    return RaceLine(path_in_program(file, root), line, function)


def _frame(at: tuple[str, int, str]) -> Frame:
    return Frame(*at)
