"""Hold races to a project's rules: how many it allows, and which of them it knows or allows by name."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from syncscan.gate.baseline import Baseline
from syncscan.gate.config import Written
from syncscan.gate.verdict import Allowance, By, Exempt, Limit, Rules, SortedOut, Violation
from syncscan.model.analysis import Analysis
from syncscan.model.race import Race, RaceKind, RaceLine

KINDS = tuple(kind.value for kind in RaceKind)
"""Names by which an allow-list and comments allow races, as they allow syncs by their rules."""
NOT_SEEN = (
    "A recording shows no races, as it has no addresses: check a dry run, too, "
    "`syncscan dryrun -o NAME.syncscan.json …`."
)


def sort_out_races(
    analysis: Analysis, rules: Rules, baseline: Baseline, comments: Written, today: datetime.date
) -> SortedOut[Race]:
    """Separate the races of one dry run that count; a recording has none, which is said where races are limited."""
    if not analysis.trace.info.capture.pretended:
        return SortedOut(notes=(NOT_SEEN,) if rules.races is not None else ())
    counted: list[Race] = []
    exempt: list[Exempt[Race]] = []
    used: set[int] = set()
    baseline_ids = {race.id for race in baseline.races}
    paths = _paths(analysis)
    for race in analysis.races:
        written = comments.at(race.second.line, race.second.file, *paths.get(race.second, ()))
        listed = [n for n, entry in enumerate(rules.allowed) if _names(entry, race)]
        used.update(listed)
        valid = [rules.allowed[n] for n in listed if _counts(rules.allowed[n], today)]
        if valid:
            exempt.append(Exempt(race, By.ALLOW_LIST, valid[0].reason))
        elif written is not None and written.allows(race.kind.value):
            exempt.append(Exempt(race, By.COMMENT, written.reason))
        elif race.id in baseline_ids:
            exempt.append(Exempt(race, By.BASELINE, "known before"))
        else:
            counted.append(race)
    return SortedOut(
        counted=tuple(counted),
        exempt=tuple(exempt),
        unused=(*_unused(rules.allowed, used, today), *_gone(analysis.races, baseline)),
    )


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


def _counts(entry: Allowance, today: datetime.date) -> bool:
    return entry.expires is None or today <= entry.expires


def _unused(allowed: Sequence[Allowance], used: set[int], today: datetime.date) -> Iterator[str]:
    for number, entry in enumerate(allowed):
        if is_of_races(entry) and number not in used:
            yield f"The allow-list's entry for {entry} matches no race here: remove it."
        elif is_of_races(entry) and not _counts(entry, today):
            yield f"The allow-list's entry for {entry} expired on {entry.expires} ({entry.reason})."


def _gone(races: Sequence[Race], baseline: Baseline) -> Iterator[str]:
    ids = {race.id for race in races}
    for known in baseline.races:
        if known.id not in ids:
            yield f"The baseline's {known.kind.value} in {known.file} no longer occurs: --update-baseline removes it."
