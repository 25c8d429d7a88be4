"""Write the known syncs to a baseline file, and match it against an analysis's findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from syncscan.errors import UsageError
from syncscan.gate.jobs import state_of
from syncscan.gate.matched_sites import Key, matched, without_vendor
from syncscan.gate.state import State
from syncscan.gate.verdict import CheckVerdict
from syncscan.model.analysis import Analysis
from syncscan.model.fleet import Fleet
from syncscan.model.race import RaceKind

MAX_BYTES = 64_000_000
MORE = 0.005
"""Increase in syncs per step from which a place counts as waiting more often."""

Line = Annotated[int, msgspec.Meta(ge=-1, le=2**31)]


SCHEMA: Literal["syncscan.baseline/1"] = "syncscan.baseline/1"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One known place, in the form used for matching."""

    rule: str
    scope: tuple[str, ...]
    op: str
    phase: str
    user: tuple[str, Line, str]
    in_library: tuple[str, Line, str]
    exact: bool
    per_step: Annotated[float, msgspec.Meta(ge=0, le=1e12)]

    @property
    def key(self) -> Key:
        return Key(self.scope, without_vendor(self.op), self.phase, False, self.user, self.in_library, self.exact)


class KnownRace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One known race of a dry run."""

    id: str
    kind: RaceKind
    file: str
    """The file of its later line."""


class Baseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Content of a baseline file."""

    schema: Literal["syncscan.baseline/1"]
    known: tuple[Entry, ...]
    races: tuple[KnownRace, ...] = ()


EMPTY = Baseline(schema=SCHEMA, known=())


def read_baseline(path: Path) -> Baseline:
    again = "Write it with --update-baseline."
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as e:
        raise UsageError(f"The baseline {path} can't be read: {e.strerror or e}.", again) from None
    try:
        return msgspec.json.decode(text, type=Baseline)
    except (msgspec.MsgspecError, ValueError, RecursionError) as e:
        raise UsageError(f"{path} is not a baseline that this version can read: {str(e)[:200]}.", again) from None


def baseline_of(checked: Iterable[Analysis | Fleet], verdicts: Iterable[CheckVerdict] = ()) -> Baseline:
    """Return a baseline of all syncs and races in these but those that the verdicts, made without one, exempt."""
    checked, verdicts = tuple(checked), tuple(verdicts)
    exempt = {e.of.id for verdict in verdicts for e in verdict.exempt}
    exempt_races = {e.of.id for verdict in verdicts for e in verdict.exempt_races}
    entries: dict[Key, Entry] = {}
    for state in map(state_of, checked):
        for key, site in state.sites.items():
            if site.intended or exempt.issuperset(f.id for f in site.findings):
                continue
            before = entries.get(key)
            per_step = max(site.per_step, before.per_step if before else 0.0)
            entries[key] = _entry(key, site.first.rule, per_step)
    all_races = (race for of in checked if isinstance(of, Analysis) for race in of.races)
    races = {r.id: KnownRace(id=r.id, kind=r.kind, file=r.second.file) for r in all_races if r.id not in exempt_races}
    return Baseline(
        schema=SCHEMA,
        known=tuple(entries[k] for k in sorted(entries, key=lambda k: (k.user, k.scope, k.op, k.phase))),
        races=tuple(races[id] for id in sorted(races)),
    )


def text_of(baseline: Baseline) -> str:
    """Return the text of the file, one line per entry, so that a review shows changes."""
    known, races = map(_lines, (baseline.known, baseline.races))
    more = f', "races": [\n{races}\n]' if baseline.races else ""
    return f'{{"schema": "{baseline.schema}", "known": [\n{known}\n]{more}}}\n'


def _lines(entries: Sequence[msgspec.Struct]) -> str:
    return ",\n".join(f"  {msgspec.json.encode(entry).decode()}" for entry in entries)


def known_by(baseline: Baseline, state: State) -> tuple[dict[str, str], tuple[Entry, ...]]:
    """Return the findings that a baseline knows, by id with a reason, and the entries that no longer match."""
    entries = {entry.key: entry for entry in baseline.known}
    sites = {key: site for key, site in state.sites.items() if not site.intended}
    reasons: dict[str, str] = {}
    unmatched: list[Entry] = []
    for old, new in matched(entries, sites):
        before, after = sum(entries[k].per_step for k in old), sum(sites[k].per_step for k in new)
        if old and not new:
            unmatched += [entries[k] for k in old]
        elif old and after <= before + MORE:
            reasons |= {f.id: "known before" for k in new for f in sites[k].findings}
    return reasons, tuple(unmatched)


def _entry(key: Key, rule: str, per_step: float) -> Entry:
    return Entry(
        rule=rule,
        scope=key.scope,
        op=key.op,
        phase=key.phase,
        user=key.user,
        in_library=key.in_library,
        exact=key.exact,
        per_step=per_step,
    )
