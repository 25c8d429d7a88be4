"""Races of a dry run are held to a limit, and known or allowed as syncs are."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import syncscan
from syncscan import gate
from syncscan.gate.verdict import Allowance, By, Limit, Rules
from syncscan.model.analysis import Analysis
from syncscan.model.race import RaceKind

torch = pytest.importorskip("torch")

NO_RACES = Rules(limits=(), races=0)
FILE = Path(__file__).name
RECORDING = Path(__file__).parents[2] / "sample_traces/log_item.pt.trace.json.gz"


@pytest.fixture(scope="module")
def racing() -> Analysis:
    """A dry run with two races: one is allowed by a comment."""
    with syncscan.pretend_gpu() as rec:
        host = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
        host.sum()
        host.mean()  # syncscan: allow[read-before-copy] the mean is only shown
    return rec.analysis


def test_a_race_beyond_the_limit_fails(racing: Analysis) -> None:
    """With a sentence that has both numbers, and the race itself."""
    verdict = gate.check(racing, NO_RACES)
    (violation,) = verdict.violations
    assert violation.sentence == "1 race: results may be wrong, by timing; 0 are allowed"
    assert [race.kind for race in verdict.guilty_races] == [RaceKind.READ_BEFORE_COPY]


def test_without_any_limit_a_dry_run_may_have_no_race(racing: Analysis) -> None:
    assert not gate.check(racing, Rules(limits=())).passed


def test_a_project_that_limits_syncs_alone_checks_no_races(racing: Analysis) -> None:
    assert gate.check(racing, Rules(limits=(Limit(syncs=0),))).passed


def test_as_many_as_are_allowed_pass(racing: Analysis) -> None:
    assert gate.check(racing, Rules(limits=(), races=1)).passed


def test_a_comment_on_the_later_line_allows_a_race(racing: Analysis) -> None:
    (exempt,) = gate.check(racing, NO_RACES).exempt_races
    assert (exempt.by, exempt.reason) == (By.COMMENT, "the mean is only shown")


def test_the_allow_list_allows_races_by_kind_and_line(racing: Analysis) -> None:
    """Up to its last day; an entry that matches nothing is said."""
    listed = Allowance(rule="read-before-copy", line=f"{FILE}:*", reason="old numbers will do")
    other = Allowance(rule="freed-in-use", reason="there is none")
    verdict = gate.check(racing, Rules(limits=(), races=0, allowed=(listed, other)))
    assert verdict.passed
    assert verdict.unused == ("The allow-list's entry for rule freed-in-use matches no race here: remove it.",)
    expired = Allowance(rule="read-before-copy", reason="old", expires=datetime.date(2020, 1, 1))
    assert not gate.check(racing, Rules(limits=(), races=0, allowed=(expired,))).passed


def test_a_baseline_knows_races_by_their_ids(racing: Analysis, tmp_path: Path) -> None:
    """Written and read again; one that no longer occurs is reported."""
    path = tmp_path / "known.json"
    path.write_text(gate.text_of(gate.baseline_of([racing])))
    baseline = gate.read_baseline(path)
    assert gate.check(racing, NO_RACES, baseline).passed
    with syncscan.pretend_gpu() as rec:
        torch.ones(4, device="cuda").sum()
    unused = gate.check(rec.analysis, NO_RACES, baseline).unused
    assert unused[0].startswith("The baseline's read-before-copy in ")


def test_a_recording_shows_no_races_and_says_so() -> None:
    """Where races are limited, a note sends to a dry run."""
    verdict = gate.check(syncscan.analyze(RECORDING), Rules(limits=(Limit(syncs=99),), races=0))
    assert verdict.passed
    assert any("A recording shows no races" in note for note in verdict.all_notes)


def test_a_saved_dry_run_is_checked_as_the_run_itself(racing: Analysis, tmp_path: Path) -> None:
    """It has no slice where the program never waited."""
    path = tmp_path / "run.syncscan.json"
    path.write_text(racing.to_saved())
    again = syncscan.analyze(path)
    assert [race.id for race in again.races] == [race.id for race in racing.races]
    assert not gate.check(again, NO_RACES).passed
