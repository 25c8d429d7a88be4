"""Place a dry run's races in the program, and give each an id that the next run has too."""

from __future__ import annotations

from collections import Counter

from syncscan.attribute.start_folder import path_in_program, program_root
from syncscan.model.capture import CaptureTable, Frame
from syncscan.model.race import Race, RaceLine
from syncscan.model.short_id import short_id


def races_of(capture: CaptureTable) -> tuple[Race, ...]:
    """Return the races that a dry run met, the most frequent first.

    Args:
        capture: what the dry run stored of them; a recording has none.
    """
    stacks = [tuple(capture.lines.stack(number)) for number in range(len(capture.lines.stacks))]
    root = program_root(stacks or [(_frame(record.second),) for record in capture.races])
    counts: Counter[tuple[object, ...]] = Counter()
    races = []
    for record in capture.races:
        first, second = _line(record.first, root) if record.first else None, _line(record.second, root)
        site = (record.kind.value, first and (first.file, first.function), second.file, second.function)
        counts[site] += 1  # lines move, and so a second race of a function is the second one there
        name = short_id((*site, counts[site]))
        races.append(Race(id=name, kind=record.kind, first=first, second=second, count=record.count))
    return tuple(sorted(races, key=lambda race: -race.count))


def _line(at: tuple[str, int, str], root: str) -> RaceLine:
    file, line, function = at
    return RaceLine(path_in_program(file, root), line, function)


def _frame(at: tuple[str, int, str]) -> Frame:
    return Frame(*at)
