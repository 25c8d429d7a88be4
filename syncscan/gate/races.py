"""Hold races to a project's rules: how many it allows, and which of them it knows or allows by name."""

from __future__ import annotations

import datetime
from collections.abc import Container, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from syncscan.gate.baseline import Baseline
from syncscan.gate.config import Written
from syncscan.gate.verdict import Allowance, Exempt, Limit, Rules, Violation, sort_out
from syncscan.model.analysis import Analysis
from syncscan.model.race import Race, RaceKind, RaceLine

KINDS = tuple(kind.value for kind in RaceKind)
"""Names by which an allow-list and comments allow races, as they allow syncs by their rules."""
NOT_SEEN = (
    "A recording shows no races, as it has no addresses: check a dry run, too, "
    "`syncscan dryrun -o NAME.syncscan.json …`."
)


def races_within(
    analysis: Analysis, rules: Rules, baseline: Baseline, comments: Written, today: datetime.date
) -> tuple[tuple[Race, ...], tuple[Exempt[Race], ...], Sequence[str], Sequence[str]]:
    """Return the races of one dry run that count, the exempt ones, notes, and exceptions that match none.

    A recording has no races, which is noted where they are limited.
    """
    if not analysis.trace.info.capture.pretended:
        return (), (), (NOT_SEEN,) if rules.races is not None else (), ()
    paths = _paths(analysis)
    counted, exempt, used = sort_out(
        analysis.races,
        lambda race: race.kind.value,
        _names,
        lambda race: comments.at(race.second.line, race.second.file, *paths.get(race.second, ())),
        {race.id: "known before" for race in baseline.races},
        rules,
        today,
    )
    return counted, exempt, (), (*_unused(rules.allowed, used, today), *_gone(analysis.races, baseline))


def _paths(analysis: Analysis) -> Mapping[RaceLine, Sequence[str]]:
    """Return, for each later line, the paths by which the run itself named a file of that name."""
    paths: dict[RaceLine, list[str]] = {}
    for race in analysis.races:
        for file, line, function in (record.second for record in analysis.trace.info.capture.races):
            second = race.second
            if (line, function) == (second.line, second.function) and Path(file).match(second.file):
                paths.setdefault(second, []).append(file)
    return paths


def is_of_races(entry: Allowance) -> bool:
    """Return whether an entry of the allow-list is of races alone."""
    return entry.rule in KINDS


def too_many_races(rules: Rules, counted: Sequence[Race]) -> Iterator[Violation]:
    """Yield the violation of a project's limit on races."""
    most = 0 if rules.races is None and not rules.limits else rules.races
    if most is not None and len(counted) > most:
        races, are = "race" if len(counted) == 1 else "races", "is" if most == 1 else "are"
        sentence = f"{len(counted)} {races}: results may be wrong, by timing; {most:g} {are} allowed"
        yield Violation(limit=Limit(), sentence=sentence, races=tuple(race.id for race in counted))


def _names(entry: Allowance, race: Race) -> bool:
    """Return whether an entry names a race: by its kind or its later line, and by no scope and no op."""
    if entry.scope or entry.op or not (entry.rule or entry.line):
        return False
    parts = race.second.file.replace("\\", "/").split("/")
    files = ["/".join(parts[n:]) for n in range(len(parts))]
    lines = [name for file in files for name in (file, f"{file}:{race.second.line}")]
    return (not entry.rule or fnmatchcase(race.kind.value, entry.rule)) and (
        not entry.line or any(fnmatchcase(name, entry.line) for name in lines)
    )


def _unused(allowed: Sequence[Allowance], used: Container[int], today: datetime.date) -> Iterator[str]:
    for number, entry in enumerate(allowed):
        if is_of_races(entry) and number not in used:
            yield f"The allow-list's entry for {entry} matches no race here: remove it."
        elif is_of_races(entry) and entry.expired(today):
            yield f"The allow-list's entry for {entry} expired on {entry.expires} ({entry.reason})."


def _gone(races: Sequence[Race], baseline: Baseline) -> Iterator[str]:
    ids = {race.id for race in races}
    for known in baseline.races:
        if known.id not in ids:
            yield f"The baseline's {known.kind.value} in {known.file} no longer occurs: --update-baseline removes it."
