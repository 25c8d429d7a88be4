"""Two programs compute the same when they differ by no more than rounding errors and the first from itself."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from syncscan.proof.outcome import Fingerprint, Same, Tensors
from syncscan.proof.sameness import judge

EPSILON = 2.0**-23


def tensors(*vectors: list[float]) -> Tensors:
    return Tensors(tuple((len(v),) for v in vectors), tuple(map(tuple, vectors)), tuple(EPSILON for _ in vectors))


def fingerprint(loss: float = 2.0, end: float = 1.01, begin: float = 1.0) -> Fingerprint:
    """Return the fingerprint of two steps with one loss each, and a parameter of two elements."""
    return Fingerprint((tensors([4.0]), tensors([loss])), tensors([begin, 1.0]), tensors([end, 1.0]), "losses")


FIRST = fingerprint()


def test_equal_is_the_same() -> None:
    """Nothing else has to be run for that, and it shows that the program is deterministic."""
    result = judge(FIRST, fingerprint())
    assert (result.same, result.deterministic, result.steps) == (Same.YES, True, 2)
    assert (result.difference.losses, result.difference.parameters) == (0.0, 0.0)


@pytest.mark.parametrize(("loss", "same"), [(2 + 3e-5, Same.YES), (2 + 5e-5, Same.NO)])
def test_losses_are_held_to_a_part_of_the_largest(loss: float, same: Same) -> None:
    """1e-5 of the 4 of the first step."""
    result = judge(FIRST, fingerprint(loss), FIRST, FIRST)
    assert result.same is same
    assert result.difference.losses == pytest.approx((loss - 2) / 4)


@pytest.mark.parametrize(("end", "same"), [(1.010009, Same.YES), (1.0102, Same.NO)])
def test_parameters_are_held_to_how_far_they_moved(end: float, same: Same) -> None:
    """A part in a thousand of 0.01: the two differ by a hundredth of a percent of the parameter."""
    assert judge(FIRST, fingerprint(end=end), FIRST, FIRST).same is same


def test_a_parameter_s_own_rounding_errors_are_no_difference() -> None:
    """One that hardly moves can't be told more exactly than its type holds."""
    still = fingerprint(end=1.0 + EPSILON)
    assert judge(still, fingerprint(end=1.0 + 2 * EPSILON), still, still).same is Same.YES
    assert judge(still, fingerprint(end=1.0 + 8 * EPSILON), still, still).same is Same.NO


def test_what_can_not_be_compared_is_reported() -> None:
    """Parameters of other shapes, as of fused layers: losses alone decide; and the other way round."""
    fused = replace(FIRST, begin=tensors([1.0, 1.0, 1.0]), end=tensors([1.0, 1.0, 1.0]))
    result = judge(FIRST, fused, FIRST, FIRST)
    assert (result.same, result.difference.parameters) == (Same.YES, None)
    assert result.not_compared == "their parameters differ in number or shape, so only the losses were compared"
    longer = replace(FIRST, losses=(tensors([4.0, 1.0]), tensors([2.0, 1.0])))
    assert judge(FIRST, longer, FIRST, FIRST).not_compared.startswith("their losses differ in number or shape")
    assert judge(FIRST, FIRST).not_compared == ""


def test_what_rounding_errors_make_of_the_first_is_no_difference() -> None:
    """A parameter whose gradient is noise moves anyhow."""
    other, rounded = fingerprint(end=1.012), fingerprint(end=0.99)
    assert judge(FIRST, other, FIRST, FIRST).same is Same.NO
    assert judge(FIRST, other, FIRST, rounded).same is Same.YES


def test_what_the_first_differs_from_itself_is_no_difference() -> None:
    """And it is said that it isn't deterministic."""
    result = judge(FIRST, fingerprint(2.003), fingerprint(2.002), FIRST)
    assert (result.same, result.deterministic) == (Same.YES, False)
    assert result.own is not None
    assert result.own.losses == pytest.approx(0.0005)


def test_a_program_that_never_repeats_itself_tells_nothing() -> None:
    """A program does so from 1 % on; a tolerance that allows that decides."""
    runs = FIRST, fingerprint(2.5), fingerprint(2.4), FIRST
    assert judge(*runs).same is Same.UNKNOWN
    assert judge(*runs, tolerance=0.2).same is Same.YES


def test_other_beginnings_are_reported() -> None:
    """Parameters that differ before the first step make all that follows differ."""
    result = judge(FIRST, fingerprint(begin=0.5), FIRST, FIRST)
    assert result.same is Same.NO
    assert "start with different parameters" in result.why


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_what_is_not_finite_tells_nothing(loss: float) -> None:
    """NaN is equal to NaN whatever was computed."""
    assert judge(fingerprint(loss), fingerprint(loss)).same is Same.UNKNOWN
    assert judge(FIRST, fingerprint(loss), FIRST, FIRST).same is Same.NO


def test_nothing_to_compare_tells_nothing() -> None:
    """A function that returns nothing and optimizes nothing."""
    empty = Fingerprint((tensors(), tensors()), tensors(), tensors(), "losses")
    result = judge(empty, empty)
    assert result.same is Same.UNKNOWN
    assert "let the function return" in result.why


def test_losses_decide_where_parameters_have_other_shapes() -> None:
    """As where layers were joined."""
    joined = Fingerprint(FIRST.losses, tensors([1.0, 1.0, 1.0]), tensors([1.01, 1.0, 1.0]), "losses")
    result = judge(FIRST, joined, FIRST, FIRST)
    assert (result.same, result.difference.parameters) == (Same.YES, None)
