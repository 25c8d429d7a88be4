"""Word races for every report."""

from __future__ import annotations

from syncscan.model.race import Race, RaceKind

TITLE = "Races: results may be wrong, by timing"
SHOWN = 10
"""Races that a report lists unasked; JSON has them all."""


def lines(race: Race) -> str:
    """Return the two lines of a race, as in `read in train.py:12, copied in train.py:10`."""
    later, earlier = _VERBS[race.kind]
    first = f", {earlier} {race.first}" if race.first and race.first != race.second else ""
    return f"{later} {race.second}{first}"


_VERBS = {
    RaceKind.READ_BEFORE_COPY: ("read in", "copied in"),
    RaceKind.WRITE_BEFORE_COPY: ("written in", "copied in"),
    RaceKind.UNORDERED_STREAMS: ("used in", "used before in"),
    RaceKind.FREED_IN_USE: ("used in", "used before in"),
}
