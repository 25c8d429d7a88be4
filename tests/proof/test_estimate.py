"""An interval over pairs holds the truth as often as it says, though it is looked at after each pair."""

from __future__ import annotations

import math
import random

import pytest

from syncscan.proof.estimate import MIN_PAIRS, enough, gain_of, quantile
from syncscan.proof.outcome import Pair, ProofGain
from tests.each import each


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (2, 4.303), (3, 3.182), (10, 2.228), (30, 2.042)])
def test_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    """Student's t, 95 % two-sided, as any table has it; even and odd degrees of freedom."""
    assert quantile(0.95, freedom) == pytest.approx(expected, abs=5e-4)


def test_the_gain_of_equal_pairs_is_exact() -> None:
    """Without noise the interval is the gain."""
    gain = gain_of([Pair(100.0, 70.0)] * 3)
    assert gain is not None
    assert (gain.share, gain.low, gain.high) == pytest.approx((0.3, 0.3, 0.3))


def test_what_slows_both_of_a_pair_cancels() -> None:
    """A machine that is twice as slow for one pair changes nothing."""
    even, uneven = gain_of([Pair(10, 9)] * 3), gain_of([Pair(10, 9), Pair(20, 18), Pair(10, 9)])
    assert even is not None
    assert uneven is not None
    assert (uneven.share, uneven.low) == pytest.approx((even.share, even.low))


def test_two_pairs_tell_nothing() -> None:
    """Two may agree by chance."""
    assert gain_of([Pair(100.0, 70.0)] * (MIN_PAIRS - 1)) is None


@each(
    ("after", "why"),
    [
        ((70.0, 70.2, 69.8), "the uncertainty is a tenth of the difference"),
        ((70.0, 73.0, 67.0), ""),
        ((100.0, 100.05, 99.95), "the difference is shown to be below 0.5%"),
        ((100.0, 101.0, 99.0), ""),
        ((102.0, 102.2, 101.8), "a gain of more than 0.5% is ruled out"),
        ((98.0, 98.2, 97.8), ""),
        ((70.0, 70.0), ""),
    ],
)
def test_when_to_stop(after: tuple[float, ...], why: str) -> None:
    """At a tenth of the gain, when it is shown not to matter, or when only a loss is left."""
    assert enough([Pair(100.0, us) for us in after], 0.005) == why


def test_a_loss_is_reported_sooner_than_its_size() -> None:
    """A loss of 2 % with noise of 1 % takes six pairs on average, and none of 200 is called a gain; 0.2 % takes all
    16.
    """
    lots = random.Random(11)
    counts, gains = zip(*[_drawn(-0.02, 0.01, 16, lots) for _ in range(200)], strict=True)
    assert sum(counts) / len(counts) < 6
    assert max(gain.low for gain in gains) < 0.005


def test_a_small_gain_is_seldom_given_up() -> None:
    """At most 5 % of 300 proofs of a gain of 0.6 % with noise of 2 % say that there is none."""
    lots = random.Random(13)
    assert sum(_drawn(0.006, 0.02, 16, lots)[1].high <= 0.005 for _ in range(300)) <= 15


def _drawn(truth: float, noise: float, most: int, lots: random.Random) -> tuple[int, ProofGain]:
    """Return the estimate of a known gain, with pairs drawn until it would stop, and the number of pairs."""
    pairs: list[Pair] = []
    while True:
        pairs.append(Pair(1.0, math.exp(lots.gauss(math.log(1 - truth), noise))))
        gain = gain_of(pairs)
        if gain is not None and (enough(pairs, 0.005) or len(pairs) == most):
            return len(pairs), gain


@pytest.mark.parametrize(
    ("truth", "noise", "most"), [(0.0, 0.002, 16), (0.02, 0.005, 16), (0.05, 0.01, 30), (0.3, 0.01, 16)]
)
def test_19_of_20_intervals_hold_the_truth(truth: float, noise: float, most: int) -> None:
    """However often it is looked at; 93 % of 400 proofs are two standard errors below 95 %."""
    lots = random.Random(5)
    gains = [_drawn(truth, noise, most, lots)[1] for _ in range(400)]
    assert sum(g.low <= truth <= g.high for g in gains) / len(gains) >= 0.93


def test_no_gain_is_proven_where_there_is_none() -> None:
    """At most 2 % of 300 proofs without a gain, with noise four times the threshold, say that there is one."""
    lots = random.Random(7)
    assert sum(_drawn(0.0, 0.02, 12, lots)[1].low > 0.005 for _ in range(300)) <= 6
