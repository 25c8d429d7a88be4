"""Limits are counted over a job's ranks, and two states of a job are compared place by place."""

from __future__ import annotations

import datetime
import html
import json

import pytest
from msgspec.structs import replace

from syncscan import gate
from syncscan.gate import diff_report
from syncscan.gate.differences import Diff, PromiseOutcome, SiteStatus
from syncscan.gate.limits import judge
from syncscan.gate.verdict import Allowance, By, CheckVerdict, Limit, Rules
from syncscan.model.fleet import Fleet, LateCause
from syncscan.report import markup, page, terminal
from tests.fleet.example import damaged, even, hostile, job, of_job, rank_finding
from tests.report.example import HOSTILE

TODAY = datetime.date(2026, 1, 1)


def check(fleet: Fleet, *limits: Limit, allowed: tuple[Allowance, ...] = (), comment: str = "") -> CheckVerdict:
    return judge(fleet, Rules(limits=limits, allowed=allowed), gate.EMPTY, lambda file: comment or None, TODAY)


def sentences(verdict: CheckVerdict) -> list[str]:
    return [v.sentence for v in verdict.violations]


def test_syncs_and_waits_are_those_of_the_rank_that_has_the_most() -> None:
    """Rank 0 has both syncs, the others one."""
    verdict = check(job(), Limit(syncs=1, wait_ms=5))
    assert sentences(verdict) == [
        "the step: rank 0 has 2 syncs per step; the limit is 1",
        "the step: rank 0 waits 6.00 ms per step; the limit is 5 ms",
    ]
    assert check(job(), Limit(syncs=2, wait_ms=6)).passed


def test_a_limit_on_races_alone_says_that_a_job_is_checked_for_none() -> None:
    """It fails nothing, and counts no syncs, as for one trace."""
    verdict = gate.check(job(), Rules(limits=(), races=0))
    assert verdict.passed
    assert any("Races weren't checked" in note for note in verdict.all_notes)
    assert not any("Races" in note for note in check(job(), Limit(syncs=2)).all_notes)


def test_what_removing_would_save_is_of_the_job() -> None:
    """It covers all of its syncs, one, and some, where the gain is known to lie between the best one's and all."""
    assert sentences(check(job(), Limit(recoverable=0.05))) == [
        "the step: removing its syncs would save 7.20% of the job's step; the limit is 5.00%"
    ]
    assert check(job(), Limit(by="rule", glob="nonzero", recoverable=0.01)).passed
    third = of_job(rank_finding(id="third", rule="third", op="aten::third", line=99), (0,), 10.0, (0.0, 40.0))
    three = replace(job(), findings=(*job().findings, third))
    few = Allowance(rule="nonzero", reason="r"), Allowance(op="aten::third", reason="r")
    assert check(three, Limit(recoverable=0.075), allowed=few[:1]).passed
    assert sentences(check(three, Limit(recoverable=0.071), allowed=few[:1])) == [
        "the step: removing its syncs would save between 7.00% and 7.20% of the job's step; the limit is 7.10%"
    ]
    assert "7.00% of the job's step or more" in sentences(check(three, Limit(recoverable=0.05), allowed=few[:1]))[0]


def test_how_long_ranks_hold_each_other_up_is_a_limit() -> None:
    """For whatever reason of the whole step; of some syncs only behind these."""
    assert sentences(check(job(), Limit(held_up=0.05))) == [
        "the step: the latest ranks delay the job for 7.00% of its step, rank 0 the most; the limit is 5.00%"
    ]
    assert check(job(), Limit(held_up=0.08)).passed
    assert check(job(), Limit(by="rule", glob="nonzero", held_up=0.0)).passed
    slow = replace(job(), lateness=tuple(replace(x, cause=LateCause.KERNELS, finding="") for x in job().lateness))
    verdict = check(slow, Limit(held_up=0.05))
    assert not verdict.passed
    assert verdict.guilty == ()
    (notes,) = check(job(unprofiled_us=5_000.0), Limit(held_up=0.5)).notes
    assert notes == "The profiler makes the step 2.0 times as long: without it, other ranks may be late."
    assert "is unknown" in sentences(check(job(matched=0, lateness=()), Limit(held_up=0.05)))[0]


def test_without_limits_no_sync_is_allowed() -> None:
    """And a job without any passes."""
    assert not check(job()).passed
    assert check(even()).passed


def test_what_nobody_could_see_passes_nothing() -> None:
    """Traces in which no device is busy."""
    fleet = even()
    blind = tuple(replace(r, of=replace(r.of, busy_us=0.0, communication_us=0.0)) for r in fleet.ranks)
    assert "nothing was checked" in sentences(check(replace(fleet, ranks=blind)))[0]


def test_missing_ranks_are_reported() -> None:
    """Missing ranks can't be checked."""
    assert check(damaged()).notes == (
        "1 of 5 ranks has no readable trace and was not checked.",
        "1 trace couldn't be read.",
    )


def test_allow_list_comment_and_baseline_exempt() -> None:
    """As of a trace."""
    by_list = check(job(), allowed=(Allowance(scope="log*", line="train.py:52", reason="r"),))
    assert [e.by for e in by_list.exempt] == [By.ALLOW_LIST]
    commented = "\n" * 51 + "x = loss.item()  # syncscan: allow[item] the scheduler needs it\n"
    assert [e.by for e in check(job(), comment=commented).exempt] == [By.COMMENT]
    baseline = gate.baseline_of([job()])
    assert len(baseline.known) == 2
    assert gate.check(job(), Rules(limits=()), baseline).passed
    assert len(gate.check(even(), Rules(limits=()), baseline).unused) == 2


def test_a_limit_by_owner_counts_as_in_a_trace() -> None:
    """A job's finding is that of its ranks, with whose code waits."""
    assert not check(job(), Limit(by="owner", glob="user", syncs=0)).passed
    assert check(job(), Limit(by="owner", glob="framework", syncs=0)).passed


def render_text(difference: Diff) -> str:
    return terminal.drawn(diff_report.blocks(difference), 300)


def without_item(**changes: object) -> Fleet:
    """The job with its rank's sync gone, 710 µs shorter."""
    fleet = job(observed_us=9_290.0, unprofiled_us=9_290.0, lateness=(), **changes)
    ranks = tuple(replace(r, of=replace(r.of, findings=r.of.findings[-1:])) for r in fleet.ranks)
    return replace(fleet, ranks=ranks, findings=fleet.findings[1:])


def test_what_is_gone_kept_what_was_projected() -> None:
    """The job's step against what its replay had said."""
    difference = gate.diff(job(unprofiled_us=10_000.0), without_item())
    assert [(c.change, c.site.first.rule) for c in difference.changes] == [
        (SiteStatus.GONE, "item"),
        (SiteStatus.SAME, "nonzero"),
    ]
    assert difference.step.saving_us == pytest.approx(710)
    assert difference.step.distinguishable
    assert difference.promise is not None
    promise = difference.promise
    assert (promise.saving_us, promise.range_us) == (pytest.approx(700), pytest.approx((600, 800)))
    assert promise.kept is PromiseOutcome.YES
    assert (difference.before.held_up_us, difference.before.holders, difference.after.holders) == (700, (0,), ())
    for text in (
        render_text(difference),
        markup.drawn(diff_report.blocks(difference)).replace("\\", ""),
        html.unescape(page.drawn(diff_report.blocks(difference), "syncscan diff")),
    ):
        assert "1 sync removed; no others changed." in text
        assert "was projected to save the job 700 µs (600 to 800 µs); measured: 710 µs" in text
        assert "delays the others by nothing measurable, 700 µs (rank 0) before." in text


def test_a_sync_on_more_ranks_is_worse() -> None:
    """On fewer it isn't."""
    everywhere = replace(job().findings[0], ranks=(0, 1, 2, 3))
    spread = replace(job(), findings=(everywhere, *job().findings[1:]))
    assert [c.site.first.rule for c in gate.diff(job(), spread).worse] == ["item"]
    assert gate.diff(spread, job()).worse == ()
    assert gate.diff(job(), job()).worse == ()
    assert "on 4 of 4, only on rank 0 before" in render_text(gate.diff(job(), spread))


def test_jobs_of_other_sizes_have_no_step_to_compare() -> None:
    """Nor is a sync on twice as many ranks one on more."""
    difference = gate.diff(job(4), job(8))
    assert difference.step.why_not == "The jobs have 4 and 8 ranks."
    assert difference.worse == ()


@pytest.mark.parametrize("text", HOSTILE[:4], ids=lambda text: repr(text[:12]))
def test_a_hostile_name_is_only_shown(text: str) -> None:
    """In each format."""
    difference = gate.diff(job(2), hostile(text))
    markdown = markup.drawn(diff_report.blocks(difference))
    assert "<script" not in "".join(part for n, part in enumerate(markdown.split("`")) if n % 2 == 0)
    assert not set(render_text(difference)) & set("\x1b\x07\x00\u202e\u2066")
    assert json.loads(diff_report.render(difference))["schema"] == "syncscan.diff/2"
