"""Ranks that are joined say who held the others up, why, and what removing a sync gains the job."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from syncscan.errors import UsageError
from syncscan.fleet import job_gains
from syncscan.fleet.join import join
from syncscan.model.fleet import LateCause, RankFrom
from syncscan.model.rank import RankAnalysis, decoded, encoded
from tests.builder import TraceBuilder
from tests.fleet.jobs import Step, analyses, traces


def test_a_straggler_is_named_and_the_sync_that_waits_for_it_gains_nothing() -> None:
    """Rank 1 computes 300 µs longer; rank 0 reads a number back and only waits for it."""
    fleet = join(analyses(traces([Step(item=True), Step(first=700)])))
    assert {(one.rank, one.cause) for one in fleet.lateness} == {(1, LateCause.KERNELS)}
    assert [one.late_us for one in fleet.lateness] == pytest.approx([300] * 4, abs=25)
    assert [(f.ranks, f.recoverable_us) for f in fleet.findings] == [((0,), pytest.approx(0, abs=5))]


def test_a_sync_on_one_rank_costs_the_whole_job() -> None:
    """Rank 0's host works for 200 µs behind its read-back: rank 1 waits, whose own trace has no sync at all."""
    fleet = join(analyses(traces([Step(item=True, host=200), Step()]), step_ms=0.965))
    (finding,) = fleet.findings
    assert finding.ranks == (0,)
    assert finding.recoverable_us == pytest.approx(200, abs=15)
    assert finding.recoverable_range_us is not None
    assert finding.recoverable_range_us[0] <= 200 <= finding.recoverable_range_us[1]
    assert {(one.rank, one.cause) for one in fleet.lateness[1:]} == {(0, LateCause.SYNC)}
    assert {one.finding for one in fleet.lateness[1:]} == {finding.id}


def test_the_later_of_two_syncs_is_all_that_counts() -> None:
    """Both ranks wait, one 300 µs, the other 100: one alone gains the difference, both together all."""
    fleet = join(analyses(traces([Step(item=True, host=300), Step(item=True, host=100)])))
    (finding,) = fleet.findings
    assert finding.ranks == (0, 1)
    assert fleet.recoverable_us == pytest.approx(300, abs=40)


def test_a_late_loader_is_the_input() -> None:
    """Rank 1 spends 1.2 ms of each step in its DataLoader, longer than the device is busy."""
    fleet = join(analyses(traces([Step(), Step(load=1200)])))
    assert {(one.rank, one.cause) for one in fleet.lateness} == {(1, LateCause.INPUT)}


def test_equal_ranks_hold_nobody_up() -> None:
    """No step has a late rank, and nothing is said to be gained."""
    fleet = join(analyses(traces([Step(), Step(), Step()])))
    assert (fleet.lateness, fleet.findings, fleet.recoverable_us) == ((), (), 0.0)
    assert (fleet.matched, fleet.unmatched, fleet.missing) == (4, 0, ())


def test_clocks_are_recognized_by_the_ends_of_collectives() -> None:
    """A rank whose clock is 7 ms ahead is no 7 ms late."""
    fleet = join(analyses(traces([Step(), Step(first=700)], clocks=(0, 7000))))
    assert [rank.clock_ns for rank in fleet.ranks] == [0, -7_000_000]
    assert fleet.lateness[-1].late_us == pytest.approx(300, abs=15)


def test_the_path_goes_through_the_rank_that_comes_last() -> None:
    """It spans the first step's begin to its last collective, all of it the straggler's."""
    fleet = join(analyses(traces([Step(), Step(first=700)])))
    assert {segment.rank for segment in fleet.path} == {1}
    assert [segment.step for segment in fleet.path] == [2, 3, 4, 5]
    assert all(one.end_us <= two.begin_us for one, two in zip(fleet.path, fleet.path[1:], strict=False))


def test_a_missing_rank_is_named() -> None:
    """Two of three ranks are there: the note has the third's number, and says that it may be last at collectives."""
    fleet = join(analyses(traces([Step(item=True, host=200), Step(), Step()]))[:2])
    assert fleet.missing == (2,)
    assert (fleet.matched, fleet.unmatched) == (0, 4)
    assert "it is unknown which rank waits for which" in " ".join(fleet.notes)


def renamed(one: RankAnalysis, path: str, **of: object) -> RankAnalysis:
    """The rank as of another file."""
    return replace(one, path=path, **of)


def test_a_rank_is_recognized_by_its_trace_its_name_or_its_order() -> None:
    """In this order, for all ranks alike."""
    two = analyses(traces([Step(), Step()]))
    named = [renamed(rank, f"run_rank{9 - k}.json", rank=None) for k, rank in enumerate(two)]
    neither = [renamed(rank, f"{k}.json", rank=None) for k, rank in enumerate(two)]
    messages = [
        [(rank.number, rank.numbered_from) for rank in join([replace_size(one) for one in ranks]).ranks]
        for ranks in (two, named, neither)
    ]
    assert messages == [
        [(0, RankFrom.TRACE), (1, RankFrom.TRACE)],
        [(8, RankFrom.NAME), (9, RankFrom.NAME)],
        [(0, RankFrom.ORDER), (1, RankFrom.ORDER)],
    ]


def replace_size(rank: RankAnalysis) -> RankAnalysis:
    """The rank without the size of its job."""
    return replace(rank, world_size=None)


def refused(ranks: list[RankAnalysis]) -> str:
    """Why these are no job."""
    with pytest.raises(UsageError) as caught:
        join(ranks)
    return str(caught.value)


def test_what_is_no_job_is_refused() -> None:
    """Two traces of a rank, other steps, another time, another size; each with the files and the reason."""
    first, two = analyses(traces([Step(), Step()]))
    (later, _) = analyses(traces([Step(), Step()], first=20))
    assert refused([first, renamed(first, "other.json")]) == (
        "built.pt.trace.json and other.json are both from rank 0. Give one capture of one job: one trace per rank."
    )
    assert "holds steps 20 to 23" in refused([later, two]) or "holds steps 2 to 5" in refused([later, two])
    assert "was recorded 100 s away" in refused([first, renamed(two, "b.json", base_ns=two.base_ns + 10**11)])
    assert "from jobs with 2 and 8 ranks" in refused([first, renamed(two, "b.json", world_size=8)])
    assert "No rank's trace could be read" in refused([])


def test_a_rank_is_kept_as_it_is() -> None:
    """Stored and read back, it joins to the same fleet."""
    ranks = analyses(traces([Step(item=True, host=200), Step()]))
    stored = [decoded(encoded(rank)) for rank in ranks]
    assert [replace(rank, of=None) for rank in join(stored).ranks] == [
        replace(rank, of=None) for rank in join(ranks).ranks
    ]  # type: ignore[arg-type]
    assert join(stored).findings == join(ranks).findings


def test_of_a_large_job_the_ranks_that_come_last_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty ranks, of which one waits for a read-back and one computes a little longer: the gain is that of all."""
    ranks = [Step(item=k == 7, host=200, first=430 if k == 9 else 400 - k % 5) for k in range(40)]
    analyzed = analyses(traces(ranks), step_ms=0.965)
    full = join(analyzed)
    monkeypatch.setattr(job_gains, "MANY_NODES", 100)
    some = join(analyzed)
    assert some.findings[0].recoverable_us == pytest.approx(full.findings[0].recoverable_us, abs=2)
    assert some.findings[0].recoverable_us == pytest.approx(170, abs=15)
    assert "17 of the 40 ranks are replayed" in some.notes[-1]


def with_groups(ranks: Sequence[Step], of: Callable[[int], Sequence[tuple[str, Sequence[int]]]]) -> list[TraceBuilder]:
    """A job each of whose ranks ends its steps with a collective in each of its groups, one behind the other."""
    built = traces(ranks)
    for number, t in enumerate(built):
        for event in [e for e in t.events if e["name"].startswith("nccl")]:
            for k, (name, group) in enumerate(of(number)):
                args = {**event["args"], "Process Group Name": name, "Process Group Ranks": json.dumps(list(group))}
                if len(group) == 2 and name == "pipeline":
                    args["Dst Rank"] = next(rank for rank in group if rank != number)
                begin = event["ts"] if not k else event["ts"] + event["dur"] + k
                t.events.append({**event, "ts": begin, "dur": event["dur"] if not k else 1, "args": args})
            t.events.remove(event)
    return built


def test_groups_that_share_a_name_are_recognized_by_their_ranks() -> None:
    """Four ranks, two by two: each meets one in a tensor group, another in a data group; clocks go over both."""
    groups = {0: ((0, 1), (0, 2)), 1: ((0, 1), (1, 3)), 2: ((2, 3), (0, 2)), 3: ((2, 3), (1, 3))}
    four = with_groups([Step()] * 4, lambda rank: [("tp", groups[rank][0]), ("dp", groups[rank][1])])
    fleet = join(analyses(four))
    assert (fleet.matched, fleet.unmatched) == (4 * 4, 0)
    assert [rank.clock_ns for rank in fleet.ranks] == [0, 0, 0, 0]
    unknown = "No collective is in the traces of all its ranks, so it is unknown which rank waits for which."
    assert fleet.notes[-1:] != [unknown]


def test_a_send_meets_its_receive() -> None:
    """In a group of three ranks, by the other rank that each of the two names."""
    three = with_groups([Step(), Step(first=700)], lambda rank: [("pipeline", (0, 1))])
    fleet = join(analyses(three))
    assert (fleet.matched, fleet.unmatched) == (4, 0)
    assert {one.rank for one in fleet.lateness} == {1}
