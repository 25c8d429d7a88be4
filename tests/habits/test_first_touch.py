"""Facts about pages that a thread touches first: what they cost at least, likely and at most, and whose they are."""

from __future__ import annotations

import pytest

from syncscan.model.finding import Phase
from syncscan.model.habit import Basis
from syncscan.model.host import USER, HostNode, SampledHost, ThreadUse
from syncscan.model.step import Bound
from tests.habits.test_sampled_work import SITE, STEP_US, found

COLLATE = ("my_collate", "/home/me/data.py", USER)
STACK = ("batch", "/home/me/train.py", USER)
NUMPY = ("_sum", SITE + "numpy/_core/_methods.py", "numpy")


def sampled(*lines, system=0.0, huge=0.0, page_us=1.0):
    """A step of 1,000 µs with (function, pages, own µs), each called by the one before."""
    nodes = [
        HostNode(parent=k - 1, function=f, file=file, line=7, owner=owner, phase=Phase.OTHER, us=own, self_us=own)
        for k, ((f, file, owner), _, own) in enumerate(lines)
    ]
    pages = tuple(float(n) for _, n, _ in lines)
    used = ThreadUse(
        off_us=0.0,
        on_us=STEP_US,
        delayed_us=0.0,
        faults=sum(pages),
        fault_us=page_us,
        stopped_us=(0.0,) * len(pages),
        faults_in=pages,
        touching_us=(system, *[0.0] * (len(pages) - 1)),
        huge=huge,
    )
    return SampledHost(step_us=STEP_US, steps=50, samples=1000, overhead=0.0, nodes=tuple(nodes), used=used)


def habit(*lines, bound=Bound.HOST, busy=0.0, **options):
    return found(sampled(*lines, **options), bound, busy).get("first-touch")


def test_pages_cost_what_one_costs_on_that_machine():
    """200 of 1 µs: 0.6 of that at least; at most all 300 µs of their line, and 200 to give them back."""
    flagged = habit((STACK, 200, 300.0))
    assert flagged.basis is Basis.SAMPLES
    assert flagged.recoverable_us == pytest.approx(200)
    assert flagged.recoverable_range_us == pytest.approx((120, 500))
    assert flagged.evidence == (
        "200 pages per step are touched for the first time: 200 µs (20% of the step) at 1.00 µs each",
        "in train.py:7 batch (100%)",
    )


def test_the_systems_own_time_tells_more_than_the_number_of_pages():
    """Where it is known; no more than so many pages can cost."""
    assert habit((STACK, 200, 300.0), system=250.0).recoverable_us == pytest.approx(250)
    assert habit((STACK, 200, 900.0), system=800.0).recoverable_us == pytest.approx(350)


def test_a_few_huge_pages_are_as_dear_as_many_small_ones():
    """Two of them, 300 µs in the system; without the huge ones the same time is something else."""
    flagged = habit((STACK, 2, 600.0), system=300.0, huge=2.0)
    assert flagged.recoverable_us == pytest.approx(300)
    assert flagged.recoverable_range_us[0] == pytest.approx(1.2)
    assert flagged.evidence[0].startswith(
        "2 pages per step are touched for the first time, 2 of them huge: 300 µs (30% of the step) in the"
    )
    assert habit((STACK, 2, 600.0), system=300.0) is None


def test_the_program_s_line_is_named():
    """Not the library's that it called."""
    assert habit((STACK, 0, 100.0), (NUMPY, 200, 300.0)).evidence[1] == "in train.py:7 batch (100%)"


def test_a_line_that_does_something_else_for_the_most_part_stays():
    """200 pages of 1 µs in a line of 900: at most 1.75 µs each."""
    assert habit((STACK, 200, 900.0)).recoverable_range_us == pytest.approx((120, 350))


def test_what_a_collate_function_touches_is_its_own():
    """Another habit counts that time."""
    assert habit((COLLATE, 200, 300.0)) is None


@pytest.mark.parametrize("pages", [0, 5])
def test_few_pages_are_not_worth_a_word(pages):
    """Each program touches some now and then."""
    assert habit((STACK, pages, 300.0)) is None


def test_a_step_that_its_device_bounds_is_reported_an_upper_bound():
    """All that the lines take."""
    flagged = habit((STACK, 200, 300.0), bound=Bound.DEVICE)
    assert (flagged.basis, flagged.cost_us) == (Basis.UPPER_BOUND, pytest.approx(500))
