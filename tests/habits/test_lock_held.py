"""Facts about a step's thread that others stop by the interpreter's lock, and about what only looks like it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan.habits.rules.lock_held import stopped_by_others
from syncscan.model.finding import Phase
from syncscan.model.habit import Basis
from syncscan.model.host import USER, HostNode, OtherThread, SampledHost, ThreadUse
from syncscan.model.step import Bound
from tests.habits.test_sampled_work import STEP_US, found

TRAIN = "/home/me/train.py"
SITE = "/opt/env/lib/python3.11/site-packages/"
GRAPH = SITE + "torch/autograd/graph.py"


def node(function="main", file=TRAIN, owner=USER, phase=Phase.OTHER):
    common = {"parent": -1, "line": 7, "us": 500.0, "self_us": 500.0}
    return HostNode(function=function, file=file, owner=owner, phase=phase, **common)


OWN, WAITING = node(), node("wait", "/usr/lib/python3.11/threading.py", "python")
ENGINE = node("_engine_run_backward", GRAPH, "torch", Phase.BACKWARD)
LOADING = node("get", SITE + "torch/utils/data/dataloader.py", "torch", Phase.DATA)


def sampled(*stopped, off=500.0, delayed=0.0, ran=400.0, beside=None, on=500.0, names=("reporter",)):
    """A step of 1,000 µs with (node, µs for which it was off its core while others ran)."""
    beside = sum(us for _, us in stopped) if beside is None else beside
    used = ThreadUse(
        off_us=off,
        on_us=on,
        delayed_us=delayed,
        faults=0.0,
        fault_us=1.0,
        stopped_us=tuple(us for _, us in stopped),
        faults_in=(0.0,) * len(stopped),
        touching_us=(0.0,) * len(stopped),
        huge=0.0,
    )
    return SampledHost(
        step_us=STEP_US,
        steps=50,
        samples=1000,
        overhead=0.0,
        nodes=tuple(n for n, _ in stopped),
        used=used,
        others=tuple(OtherThread(name=n, us=ran, beside_us=beside, places=("log.py:3 write",)) for n in names),
    )


def test_time_off_its_core_while_another_ran_is_the_locks():
    """400 of 500 µs off its core; the other never ran while it was on."""
    result = stopped_by_others(sampled((OWN, 400.0)))
    assert (result.surely_us, result.likely_us, result.most_us) == pytest.approx((400, 400, 500))


def test_a_thread_that_needs_no_lock_runs_in_both_alike():
    """800 µs in all, in proportion: half of them while the thread was on its core."""
    result = stopped_by_others(sampled((OWN, 400.0), ran=800.0))
    assert result.surely_us == pytest.approx(0)


@pytest.mark.parametrize("waits", [WAITING, LOADING])
def test_where_the_thread_waits_by_itself_nobody_stops_it(waits):
    """For a lock of its own, or for a loader's workers."""
    result = stopped_by_others(sampled((waits, 400.0)))
    assert (result.surely_us, result.likely_us) == (0, 0)


def test_what_it_waits_for_by_itself_isn_t_at_most_the_locks():
    """It waits for its loader for 500 µs of the step, all off its core: no lock would give them back."""
    assert stopped_by_others(sampled((LOADING, 400.0), (OWN, 40.0), off=600.0)).most_us == pytest.approx(100)


def test_in_the_backward_pass_it_is_likely_and_not_sure():
    """Autograd's thread may compute meanwhile, or be stopped as well."""
    result = stopped_by_others(sampled((OWN, 100.0), (ENGINE, 300.0)))
    assert (result.surely_us, result.likely_us) == pytest.approx((100, 400))


def test_waiting_for_a_core_is_not_waiting_for_the_lock():
    """The thread lacked a core for 450 of 500 µs off its core."""
    result = stopped_by_others(sampled((OWN, 400.0), delayed=450.0))
    assert (result.surely_us, result.most_us) == pytest.approx((50, 50))


def test_what_the_thread_computes_stays_and_all_else_may_be_the_locks():
    """Sampled steps in which it was on its core for 100 µs, where a step takes 1,000."""
    assert stopped_by_others(sampled((OWN, 400.0), on=100.0)).most_us == pytest.approx(900)


def test_without_other_threads_nothing_is_reported():
    """Nor where the system doesn't tell who waited for a core."""
    assert stopped_by_others(sampled((OWN, 400.0), names=())) is None
    assert stopped_by_others(sampled((OWN, 400.0), delayed=None)) is None
    assert stopped_by_others(replace(sampled((OWN, 400.0)), used=None)) is None


def test_the_habit_names_the_thread_and_its_line():
    """The range is that of its samples: a tenth more or less, and of the less a half, as for all such work."""
    habit = found(sampled((OWN, 400.0)))["lock-held"]
    assert habit.basis is Basis.SAMPLES
    assert habit.recoverable_us == pytest.approx(400)
    assert habit.recoverable_range_us == pytest.approx((180, 440))
    assert habit.evidence == (
        "the step's thread was blocked for 400 µs (40% of the step) outside of its own waits; it was off-CPU "
        "for 500 µs in total",
        "thread reporter ran for 400 µs per step, 100% of it while the step's thread was off-CPU, in log.py:3 write",
    )


@pytest.mark.parametrize("stopped", [(OWN, 5.0), (WAITING, 400.0), (ENGINE, 400.0)])
def test_what_is_too_little_or_may_be_its_own_waiting_is_no_habit(stopped):
    """Half a percent; a lock of the program's; a backward pass alone."""
    assert "lock-held" not in found(sampled(stopped))


def test_a_step_that_its_device_bounds_is_reported_an_upper_bound():
    """It may work meanwhile."""
    assert found(sampled((OWN, 400.0)), Bound.DEVICE)["lock-held"].basis is Basis.UPPER_BOUND


@pytest.mark.parametrize("parts", [((OWN, 400.0),), ((OWN, 100.0), (ENGINE, 200.0)), ((OWN, 100.0), (WAITING, 300.0))])
def test_no_bound_is_above_what_the_evidence_has(parts):
    """The time blocked, also in backward; the rest off its core may be the thread's own waits."""
    habit = found(sampled(*parts), Bound.INPUT)["lock-held"]
    blocked = sum(us for node, us in parts if node is not WAITING)
    assert habit.recoverable_us <= blocked


def test_a_loaders_own_threads_are_no_work_that_could_be_moved():
    """Batches are pinned in a thread of the process, and run while the step waits for them."""
    assert stopped_by_others(sampled((OWN, 400.0), names=("Thread-1 (_pin_memory_loop)",))) is None
    assert stopped_by_others(sampled((OWN, 400.0), names=("Thread-1 (_pin_memory_loop)", "a", "b"))) is not None
