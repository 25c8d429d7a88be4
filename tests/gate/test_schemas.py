"""A diff, a verdict and a baseline follow their schemas."""

from __future__ import annotations

from pathlib import Path

from syncscan import gate
from syncscan.fleet import document
from syncscan.fleet.join import join
from syncscan.fleet.worker import read_rank
from syncscan.gate import baseline, check_report, diff_report
from syncscan.gate.verdict import Limit, Rules
from tests.each import each
from tests.recordings import FOLDER, analyzed, large, name
from tests.report.test_one_story import TRACES
from tests.schemas import wrong

JOBS = ("ddp.one_rank_item", "ddp.straggler")
RULES = Rules(limits=(Limit(syncs=0),))


def test_what_compares_analyses_follows_its_schema() -> None:
    """A diff, a verdict with and without violations, a baseline."""
    before, after = (analyzed(FOLDER / f"{stem}.pt.trace.json.gz") for stem in ("logged", "logged.kept"))
    assert wrong("diff", diff_report.render(gate.diff([before], [after]))) == []
    assert wrong("baseline", baseline.text_of(baseline.baseline_of([before]))) == []
    assert wrong("check", check_report.render([gate.check(a, RULES) for a in (before, after)], "here")) == []


@each("recording", TRACES, name, large)
def test_each_verdict_follows_its_schema(recording: Path) -> None:
    """To the last key, whatever was recorded."""
    assert wrong("check", check_report.render([gate.check(analyzed(recording), RULES)], "")) == []


def test_a_job_follows_its_schema() -> None:
    """The jobs are recorded ranks, one of them with a sync, and two states of a job."""
    before, after = (join([read_rank(str(p)) for p in sorted((FOLDER / "jobs" / n).glob("*.gz"))]) for n in JOBS)
    assert wrong("fleet", document.render(before)) == []
    assert wrong("fleet", document.render(after)) == []
    assert wrong("diff", diff_report.render(gate.diff(before, after))) == []
