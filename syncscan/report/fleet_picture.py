"""From a Fleet to what is drawn of it: rows of ranks, a cell a step coloured by lateness, and the critical path.

A large job has a row for each rank that stands out, and one for each run of ranks between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from syncscan.model.fleet import Fleet, JobRank, Lateness
from syncscan.report.fleet_story import SHORT_CAUSES, runs
from syncscan.report.units import duration

WIDTH = 1000
"""Units of the drawing from the first drawn step's begin to the last one's end."""
ROWS = 64
"""Ranks that have a row each; of more only those that stand out have."""
OUT = 24
"""How many of those, at most."""
STEPS = 24
"""Consecutive steps that are drawn, those with the most lateness."""
SEGMENTS = 4000
"""Parts of the path that are drawn."""
FAINTEST = 0.3
"""How much of its colour the least late cell has."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A step of a row's ranks."""

    x: float
    width: float
    cause: str
    """Empty where none of the row's ranks is late in it."""
    strength: float
    """How late it is: of the latest cell 1."""
    said: str


@dataclass(frozen=True, slots=True)
class Row:
    """One rank, or consecutive ones."""

    label: str
    alone: bool
    said: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of the path in one row."""

    row: int
    x: float
    end: float
    said: str


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """Rows from the top, legs in the order of time, and the axis."""

    rows: tuple[Row, ...]
    legs: tuple[Leg, ...]
    steps: tuple[tuple[float, str], ...]
    """Where each drawn step begins, and its number."""
    lasts: str
    """From left to right."""
    note: str
    """What isn't drawn; empty where all is."""


def picture_of(fleet: Fleet) -> FleetPicture | None:
    """The picture of any job; None of one without a step that all ranks have."""
    if not fleet.ranks or not fleet.steps:
        return None
    canvas = _Canvas(fleet, _drawn_steps(fleet))
    groups = _groups(fleet)
    place = {rank.number: row for row, group in enumerate(groups) for rank in group}
    return FleetPicture(
        rows=tuple(canvas.row(group) for group in groups),
        legs=tuple(canvas.legs(place)),
        steps=tuple(canvas.marks()),
        lasts=duration(canvas.length / 1e3),
        note=_note(fleet, canvas.steps, groups),
    )


def _drawn_steps(fleet: Fleet) -> tuple[int, ...]:
    """All, or the consecutive ones with the most lateness."""
    late: defaultdict[int, float] = defaultdict(float)
    for entry in fleet.lateness:
        late[entry.step] += entry.late_us
    windows = range(max(1, len(fleet.steps) - STEPS + 1))
    best = max(windows, key=lambda k: sum(late[step] for step in fleet.steps[k : k + STEPS]))
    return fleet.steps[best : best + STEPS]


def _groups(fleet: Fleet) -> list[list[JobRank]]:
    """The ranks of each row."""
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
    """What scales the job's clock to units of the drawing."""

    def __init__(self, fleet: Fleet, steps: tuple[int, ...]) -> None:
        self.fleet, self.steps = fleet, steps
        self.spans = {rank.number: _spans(rank, steps) for rank in fleet.ranks}
        self.zero = min((b for rank in fleet.ranks for b, _ in _spans(rank, fleet.steps[:1]).values()), default=0)
        drawn = [span for spans in self.spans.values() for span in spans.values()] or [(0, 1)]
        self.begin = min(begin for begin, _ in drawn)
        self.length = max(1, max(end for _, end in drawn) - self.begin)
        self.late: defaultdict[tuple[int, int], list[Lateness]] = defaultdict(list)
        for entry in fleet.lateness:
            self.late[entry.rank, entry.step].append(entry)
        self.most = max((entry.late_us for entry in fleet.lateness), default=0.0) or 1.0

    def x(self, ns: float) -> float:
        """Of a time on the job's clock."""
        return round((min(max(ns, self.begin), self.begin + self.length) - self.begin) / self.length * WIDTH, 2)

    def row(self, ranks: Sequence[JobRank]) -> Row:
        """One rank, or some that lie side by side."""
        (label,) = runs([ranks[0].number]) if len(ranks) == 1 else [f"{ranks[0].number}-{ranks[-1].number}"]
        most = max(ranks, key=lambda rank: rank.waits_us)
        which = f"rank {label}" if len(ranks) == 1 else f"{len(ranks)} ranks, {label}: at most"
        holds = max(rank.holds_us for rank in ranks)
        said = f"{which} holds up {duration(holds)} and waits {duration(most.waits_us)} a step for others"
        return Row(label, len(ranks) == 1, said, tuple(self._cells(ranks)))

    def _cells(self, ranks: Sequence[JobRank]) -> Iterator[Cell]:
        for step in self.steps:
            spans = [span for rank in ranks if (span := self.spans[rank.number].get(step))]
            if not spans:
                continue
            x, end = self.x(min(begin for begin, _ in spans)), self.x(max(end for _, end in spans))
            late = [entry for rank in ranks for entry in self.late[rank.number, step]]
            latest = max(late, key=lambda entry: entry.late_us, default=None)
            strength = FAINTEST + (1 - FAINTEST) * latest.late_us / self.most if latest else 0.0
            cause = latest.cause.value if latest else ""
            yield Cell(x, round(max(end - x, 1.0), 2), cause, round(strength, 3), _said(step, latest))

    def legs(self, place: dict[int, int]) -> Iterator[Leg]:
        """The path; what follows in the same row is one leg."""
        wanted = frozenset(self.steps)
        found = [s for s in self.fleet.path if s.step in wanted and s.rank in place][:SEGMENTS]
        for (row, rank), group in groupby(found, key=lambda s: (place[s.rank], s.rank)):
            parts = list(group)
            begin, end = self.zero + parts[0].begin_us * 1e3, self.zero + parts[-1].end_us * 1e3
            to = f" up to {parts[-1].collective}" if parts[-1].collective else ""
            yield Leg(row, self.x(begin), self.x(end), f"rank {rank}: {duration((end - begin) / 1e3)}{to}")

    def marks(self) -> Iterator[tuple[float, str]]:
        """Where the drawn steps begin, on the rank that is first."""
        for step in self.steps:
            begins = [spans[step][0] for spans in self.spans.values() if step in spans]
            if begins:
                yield self.x(min(begins)), str(step)


def _spans(rank: JobRank, steps: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Step's number → its begin and end on the job's clock, ns."""
    shift, wanted = rank.of.base_ns + rank.clock_ns, frozenset(steps)
    return {s.number: (s.begin + shift, max(s.end, s.begin) + shift) for s in rank.of.steps if s.number in wanted}


def _said(step: int, late: Lateness | None) -> str:
    if late is None:
        return f"step {step}: not late"
    parts = ", ".join(f"{SHORT_CAUSES[cause]} {duration(us)}" for cause, us in late.parts)
    why = f": {parts}" if parts else f", by {SHORT_CAUSES[late.cause]}"
    return f"step {step}: rank {late.rank} comes {duration(late.late_us)} later than the others{why}"


def _note(fleet: Fleet, steps: Sequence[int], groups: Sequence[Sequence[JobRank]]) -> str:
    said = []
    if len(steps) < len(fleet.steps):
        said.append(f"{len(steps)} of {len(fleet.steps)} steps are drawn, those around the most lateness.")
    if len(groups) < len(fleet.ranks):
        said.append("Ranks that hold nobody up share a row with their neighbours.")
    if len(fleet.path) > SEGMENTS:
        said.append("The path is drawn in part.")
    return " ".join(said)
