"""The replay of a whole job keeps what any replay must, and of one rank it is that rank's own."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncscan import api
from syncscan.facts.period import step_intervals
from syncscan.model.rank import CollectiveNode, RankGraph, RankProgram, RunNode, WaitNode
from syncscan.whatif.job_replay import AS_RECORDED, Job, SharedCollective, period
from syncscan.whatif.projector import Projector
from syncscan.whatif.rank_graph import corners, graph_of_rank
from syncscan.whatif.replay import Replay
from syncscan.whatif.replay import period as period_alone
from tests.recordings import analyzed
from tests.whatif.story import told

SAMPLES = Path(__file__).parents[2] / "sample_traces"
TIMES = st.floats(1, 1000)


@pytest.mark.parametrize("name", ["logged", "log_item"])
@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.5, 1.2)])
def test_one_rank_is_replayed_as_alone(name: str, scales: tuple[float, float]) -> None:
    """Its steps packed and replayed as a job take what its own graph takes, also without its syncs."""
    analysis = analyzed(SAMPLES / f"{name}.pt.trace.json.gz")
    projector = analysis.projector
    assert isinstance(projector, Projector)
    graph = graph_of_rank(projector, projector.steps.intervals, {})
    assert graph is not None
    removed = frozenset(range(len(analysis.findings)))
    alone = Replay(projector.graph, *scales)
    job = Job((graph,), {})
    assert period(job, scales) == pytest.approx(period_alone(alone))
    assert period(job, scales, {0: removed}) == pytest.approx(period_alone(alone, removed))


def collective(place: int) -> CollectiveNode:
    """A collective on the first stream."""
    return CollectiveNode(0, 1.0, 0, 0.0, 0.0, place)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Some ranks with runs, syncs and a common number of collectives, and a common time for each."""
    collectives = draw(st.integers(0, 3))
    count = draw(st.integers(1, 3))
    graphs = []
    for _ in range(count):
        nodes: list[object] = []
        for place in range(collectives + 1):
            for _ in range(draw(st.integers(0, 2))):
                work = draw(TIMES)
                nodes.append(RunNode(0, draw(TIMES), 1, ((0, work, 0.0, ((0.0, work),)),)))
                if draw(st.booleans()):
                    finding = draw(st.integers(0, 1))
                    nodes.append(WaitNode(0, draw(TIMES), (0,), -1, finding, 5.0, 3.0, 1.0, 0.0, 0.0, 0.0, -1, 0.0))
            if place < collectives:
                nodes.append(collective(place))
        programs = (RankProgram(0, 0.0, 0.0, tuple(nodes)),)  # type: ignore[arg-type]
        graphs.append(
            RankGraph(
                programs=programs, threads=1, streams=1, events=0, own_share=1.0, slowdown=1.0, slowdown_by_ns=0.0
            )
        )
    ranks = tuple(range(count))
    took = draw(TIMES)
    met = {
        (rank, place): collective
        for place in range(collectives)
        for collective in [SharedCollective(ranks, (took,) * count, (True,) * count)]
        for rank in ranks
    }
    return Job(tuple(graphs), met)


@given(jobs())
def test_removing_more_never_costs_time(job: Job) -> None:
    """Neither on one rank nor on all."""
    every = {rank: frozenset({0, 1}) for rank in range(len(job.graphs))}
    removals = [{}, {0: frozenset({0})}, {0: frozenset({0, 1})}, every]
    taken = [period(job, AS_RECORDED, removal) for removal in removals]
    assert all(more <= less * 1.0001 + 1e-6 for less, more in itertools.pairwise(taken))


@given(jobs())
def test_no_job_is_faster_than_its_slowest_rank(job: Job) -> None:
    """Each rank alone, with collectives that take what they take when all have come."""
    for rank, graph in enumerate(job.graphs):
        alone = {
            (0, place): collective.took_ns[rank] for (who, place), collective in job.collectives.items() if who == rank
        }
        assert period(job, AS_RECORDED) >= period(Job((graph,), {}, alone), AS_RECORDED) * 0.9999 - 1e-6


def test_what_is_behind_but_slower_sets_the_pace() -> None:
    """A stream waits for another rank, ahead of its own host, which is a nanosecond a step slower than that rank."""

    def graph(*nodes: CollectiveNode | RunNode) -> RankGraph:
        programs = (RankProgram(0, 0.0, 0.0, nodes),)
        return RankGraph(
            programs=programs, threads=1, streams=1, events=0, own_share=1.0, slowdown=1.0, slowdown_by_ns=0.0
        )

    def run(host: float) -> RunNode:
        return RunNode(0, host, 1, ((0, 1.0, 0.0, ((0.0, 1.0),)),))

    slower = graph(run(1.0), collective(0), run(1.0), run(467.0))
    other = graph(run(468.0), collective(0))
    shared = SharedCollective((0, 1), (2.0, 2.0), (True, True))
    assert period(Job((slower,), {}), AS_RECORDED) == 470.0
    assert period(Job((slower, other), {(0, 0): shared, (1, 0): shared}), AS_RECORDED) == 470.0


def test_ranks_with_collectives_in_other_orders_still_finish() -> None:
    """Two groups whose collectives two ranks launch in different orders: the replay ends."""
    one = RankProgram(0, 0.0, 0.0, (collective(0), collective(1)))
    other = RankProgram(0, 0.0, 0.0, (collective(1), collective(0)))
    graph = RankGraph(programs=(one,), threads=1, streams=1, events=0, own_share=1.0, slowdown=1.0, slowdown_by_ns=0.0)
    first, second = (SharedCollective((0, 1), (10.0, 10.0), (True, True)) for _ in range(2))
    met = {(0, 0): first, (0, 1): second, (1, 0): first, (1, 1): second}
    job = Job(
        (
            graph,
            RankGraph(
                programs=(other,), threads=1, streams=1, events=0, own_share=1.0, slowdown=1.0, slowdown_by_ns=0.0
            ),
        ),
        met,
    )
    assert period(job, AS_RECORDED) > 0


@given(st.lists(st.tuples(st.floats(-100, 0), st.floats(0, 100)), min_size=1), st.floats(0.1, 2), st.floats(0.5, 1.5))
def test_the_corners_are_all_that_matters(launches: list[tuple[float, float]], scale: float, stretch: float) -> None:
    """Whatever the scales, one of the corners is as late as the latest of all launches."""
    host, device = (np.array(column) for column in zip(*launches, strict=True))
    stored = max(scale * h + stretch * d for h, d in corners(host, device))
    assert stored == pytest.approx(float(np.max(scale * host + stretch * device)))


def test_of_a_long_trace_six_steps_evenly_chosen_are_replayed() -> None:
    """They are six of sixteen steps, the first and the last among them: all ranks choose the same."""
    analysis = api.analyze_trace(told([("launch", 50.0), ("work", 100.0)], steps=16).trace())
    projector = Projector(analysis.trace, analysis.findings, None)
    graph = graph_of_rank(projector, step_intervals(analysis.trace), {})
    assert graph is not None
    assert [program.step for program in graph.programs] == [0, 3, 6, 9, 12, 15]


def test_a_collective_slows_the_replay_of_what_runs_beside_it() -> None:
    """A rank waits 500 µs for the other and computes 300 µs meanwhile: at half its speed it isn't done by then."""
    run = RunNode(0, 1.0, 1, ((1, 300.0, 0.0, ((0.0, 300.0),)),))
    early = RankProgram(0, 0.0, 0.0, (collective(0), run))
    late = RankProgram(0, 0.0, 0.0, (RunNode(0, 500.0, 0, ()), collective(0)))
    base = RankGraph(programs=(early,), threads=1, streams=2, events=0, own_share=1.0, slowdown=2.0, slowdown_by_ns=0.0)
    met = {
        (rank, 0): collective for collective in [SharedCollective((0, 1), (1.0, 1.0), (True, True))] for rank in (0, 1)
    }
    slow = Job((base, _with(base, late)), met)
    fast = Job(tuple(_with(graph, graph.programs[0], 1.0) for graph in slow.graphs), met)
    assert period(slow, AS_RECORDED) >= period(fast, AS_RECORDED)


def _with(graph: RankGraph, program: RankProgram, slowdown: float = 2.0) -> RankGraph:
    return RankGraph(
        programs=(program,),
        threads=1,
        streams=graph.streams,
        events=0,
        own_share=1.0,
        slowdown=slowdown,
        slowdown_by_ns=0.0,
    )


def test_a_rank_that_does_not_wait_goes_on_when_its_own_part_is_done() -> None:
    """Who doesn't wait for the others goes on when it is done itself."""
    eager = SharedCollective((0, 1), (10.0, 20.0), (False, True))
    first = RankProgram(0, 0.0, 0.0, (collective(0),))
    last = RankProgram(0, 0.0, 0.0, (RunNode(0, 1000.0, 0, ()), collective(0)))
    graph = RankGraph(
        programs=(first,), threads=1, streams=1, events=0, own_share=1.0, slowdown=1.0, slowdown_by_ns=0.0
    )
    job = Job((graph, _with(graph, last, 1.0)), {(0, 0): eager, (1, 0): eager})
    waiting = msgspec.structs.replace(eager, waits=(True, True))
    held = msgspec.structs.replace(job, collectives={(0, 0): waiting, (1, 0): waiting})
    assert period(job, AS_RECORDED) <= period(held, AS_RECORDED)


def test_a_jobs_gain_is_that_of_the_fix() -> None:
    """The host waits, and then works for 1,000 ns: with the wait go 10 ns, with its fix 610."""
    wait = WaitNode(0, 0.0, (0,), -1, 0, 10.0, 0.0, 0.0, 0.0, fix=(600.0, 0.0, -1, 0.0))
    programs = (RankProgram(0, 0.0, 0.0, (wait, RunNode(0, 1000.0, 0, ()))),)
    graph = RankGraph(
        programs=programs, threads=1, streams=1, events=0, own_share=1.0, slowdown=1.0, slowdown_by_ns=0.0
    )
    taken = [period(Job((each,), {}), AS_RECORDED, {0: frozenset({0})}) for each in (graph, graph.fixed())]
    assert (period(Job((graph,), {}), AS_RECORDED), *taken) == (1010.0, 1000.0, 400.0)
