"""Draw the picture of a Fleet: rows of ranks, a cell per step colored by lateness, and the critical path.

A large job has a row for each outlier, and one for each range of ranks between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from syncscan.model.fleet import Fleet, JobRank, LateCause, Lateness
from syncscan.report.fleet_story import SHORT_CAUSES
from syncscan.report.page import template
from syncscan.report.printable import shown
from syncscan.report.units import duration

WIDTH = 1000
"""Width of the drawing, in units."""
ROWS = 64
"""Most ranks that get a row each; a larger job has rows only for ranks that stand out."""
OUT = 24
"""Most ranks of a larger job that get a row each."""
STEPS = 24
"""Most consecutive steps drawn, chosen for the most lateness."""
SEGMENTS = 4000
"""Most segments of the path that are drawn."""
FAINTEST = 0.3
"""Color strength of the least late cell."""


MAX_LATE = 200
"""Steps whose latest rank is described in words."""
LABEL, LABEL_IN_RUN = 64, 96
"""Width of the labels left of the drawing: for single ranks, and for ranges of ranks."""
_HEIGHTS = ((8, 34), (24, 22))
"""Row height by the number of rows up to which it applies, in drawing units."""
LOW = 13
"""Row height for more rows."""


def markup(fleet: Fleet, picture: dict[str, Any]) -> str:
    """Return the picture for a page: its rows, the critical path as one line from row to row, and a table."""
    return template("fleet_picture.html.j2").render(
        picture=picture,
        causes=[(cause.value, SHORT_CAUSES[cause]) for cause in LateCause],
        late=[(x.step, x.rank, duration(x.late_us), _parts(x)) for x in fleet.lateness[:MAX_LATE]],
        late_more=max(0, len(fleet.lateness) - MAX_LATE),
    )


def picture_of(fleet: Fleet) -> dict[str, Any] | None:
    """Return rows from the top, a column per step, and the critical path's legs by time, as the template draws them."""
    if not fleet.ranks or not fleet.steps:
        return None
    steps, groups = _choose_steps(fleet), _groups(fleet)
    height = next((tall for most, tall in _HEIGHTS if len(groups) <= most), LOW)
    canvas = _Canvas(fleet, steps)
    place = {rank.number: row for row, group in enumerate(groups) for rank in group}
    legs = list(canvas.legs(place, height))
    ends = (f"{leg['x']} {leg['y']} L{leg['end']} {leg['y']}" for leg in legs)
    return {
        "rows": [canvas.row(group) for group in groups],
        "row": height,
        "label": LABEL if all(len(group) == 1 for group in groups) else LABEL_IN_RUN,
        "width": WIDTH,
        "height": height * len(groups),
        "legs": legs,
        "path": " ".join(f"{'L' if number else 'M'}{line}" for number, line in enumerate(ends)),
        "steps": [(canvas.column(step), str(step)) for step in steps],
        "note": _note(fleet, steps, groups),
    }


def _choose_steps(fleet: Fleet) -> tuple[int, ...]:
    """Return all steps, or the consecutive ones with the most lateness."""
    late: defaultdict[int, float] = defaultdict(float)
    for entry in fleet.lateness:
        late[entry.step] += entry.late_us
    windows = range(max(1, len(fleet.steps) - STEPS + 1))
    best = max(windows, key=lambda k: sum(late[step] for step in fleet.steps[k : k + STEPS]))
    return fleet.steps[best : best + STEPS]


def _groups(fleet: Fleet) -> list[list[JobRank]]:
    if len(fleet.ranks) <= ROWS:
        return [[rank] for rank in fleet.ranks]
    weight: defaultdict[int, float] = defaultdict(float)
    for entry in fleet.lateness:
        weight[entry.rank] += entry.late_us
    out = set(sorted(weight, key=lambda rank: -weight[rank])[:OUT])
    keys = (rank.number if rank.number in out else None for rank in fleet.ranks)
    keyed = list(zip(keys, fleet.ranks, strict=True))
    return [[rank for _, rank in group] for _, group in groupby(keyed, key=lambda pair: pair[0])]


class _Canvas:
    """Maps a job to coordinates: a column per step, and within it the path by its own time."""

    def __init__(self, fleet: Fleet, steps: Sequence[int]) -> None:
        self.fleet, self.steps = fleet, steps
        self.width = WIDTH / len(steps)
        self.place = {step: place for place, step in enumerate(steps)}
        self.late: defaultdict[tuple[int, int], list[Lateness]] = defaultdict(list)
        for entry in fleet.lateness:
            self.late[entry.rank, entry.step].append(entry)
        self.most = max((entry.late_us for entry in fleet.lateness), default=0.0) or 1.0

    def column(self, step: int) -> float:
        return round(self.place[step] * self.width, 2)

    def row(self, ranks: Sequence[JobRank]) -> dict[str, Any]:
        first, last = ranks[0].number, ranks[-1].number
        label = str(first) if first == last else f"{first}-{last}"
        which = f"rank {label}:" if len(ranks) == 1 else f"{len(ranks)} ranks, {label}, at most:"
        holds, waits = max(rank.holds_us for rank in ranks), max(rank.waits_us for rank in ranks)
        sentence = f"{which} delays others by {duration(holds)} per step, waits {duration(waits)} for others"
        return {"label": label, "said": sentence, "cells": [self._cell(ranks, step) for step in self.steps]}

    def _cell(self, ranks: Sequence[JobRank], step: int) -> dict[str, Any]:
        """Return a step of a row's ranks: its latest cause, and its lateness as a fraction of the latest cell's."""
        late = [entry for rank in ranks for entry in self.late[rank.number, step]]
        latest = max(late, key=lambda entry: entry.late_us, default=None)
        strength = FAINTEST + (1 - FAINTEST) * latest.late_us / self.most if latest else 0.0
        return {
            "x": self.column(step),
            "width": round(self.width, 2),
            "cause": latest.cause.value if latest else "",
            "strength": round(strength, 3),
            "said": _sentence(step, latest),
        }

    def legs(self, place: dict[int, int], height: int) -> Iterator[dict[str, Any]]:
        """Yield the path, scaled to each step's column; consecutive parts in one row are one leg."""
        wanted = [s for s in self.fleet.path if s.step in self.place and s.rank in place][:SEGMENTS]
        for step, of_step in groupby(wanted, key=lambda s: s.step):
            segments = list(of_step)
            begin, end = segments[0].begin_us, max(s.end_us for s in segments)
            scale = self.width / max(end - begin, 1e-3)
            for rank, group in groupby(segments, key=lambda s: s.rank):
                parts = list(group)
                x, until = ((us - begin) * scale for us in (parts[0].begin_us, parts[-1].end_us))
                to = f" up to {parts[-1].collective}" if parts[-1].collective else ""
                sentence = f"step {step}: rank {rank}, {duration(parts[-1].end_us - parts[0].begin_us)}{to}"
                left, right = (round(self.column(step) + max(at, 0.0), 2) for at in (x, until))
                yield {"x": left, "end": right, "y": (place[rank] + 0.5) * height, "said": shown(sentence, 200)}


def _sentence(step: int, late: Lateness | None) -> str:
    if late is None:
        return f"step {step}: not late"
    return f"step {step}: rank {late.rank} arrives {duration(late.late_us)} after the others: {_parts(late)}"


def _parts(late: Lateness) -> str:
    """Return the causes of a rank's lateness, largest first: `a sync 650 µs, host 50 µs`."""
    return ", ".join(f"{SHORT_CAUSES[cause]} {duration(us)}" for cause, us in late.parts) or SHORT_CAUSES[late.cause]


def _note(fleet: Fleet, steps: Sequence[int], groups: Sequence[Sequence[JobRank]]) -> str:
    notes = []
    if len(steps) < len(fleet.steps):
        notes.append(f"{len(steps)} of {len(fleet.steps)} steps are drawn: those with the longest delays.")
    if len(groups) < len(fleet.ranks):
        notes.append("Ranks that delay nobody share a row with their neighbors.")
    if len(fleet.path) > SEGMENTS:
        notes.append("Only part of the path is drawn.")
    return " ".join(notes)
