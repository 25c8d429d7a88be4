"""The typical time of steps, and how sure one can be of it."""

from __future__ import annotations

import random

import pytest

from syncscan.model.step_times import StepTimes


def test_what_is_too_noisy_is_reported_with_what_would_help() -> None:
    """Twice the median's standard error, from the quartiles; four times the steps halve it."""
    noisy = StepTimes(1000.0, tuple(map(float, [950, 1050, 1150, 850, 1000, 1200, 800, 1000, 1100, 900])), "device")
    assert noisy.uncertainty == pytest.approx(2 * 1.2533 * 175 / 1.349 / 10**0.5 / 1000, rel=0.05)
    advice = "A step takes 1.00 ms without the profiler, ±10% after 10 steps: repeat with --calibrate 50."
    assert noisy.advice() == advice


def test_steps_that_wander_together_are_less_sure_than_as_many_apart() -> None:
    """A host that is slow for ten steps and fast for ten has been seen twice, not twenty times."""
    apart = StepTimes(1000.0, (900.0, 1100.0) * 20, "device")
    together = StepTimes(1000.0, ((900.0,) * 10 + (1100.0,) * 10) * 2, "device")
    assert apart.uncertainty == pytest.approx(2 * 1.2533 * 200 / 1.349 / 40**0.5 / 1000)
    assert together.uncertainty == pytest.approx(3.182 * 115.47 / 2 / 1000, rel=1e-4)


def test_the_claim_covers_steps_that_wander_as_a_shared_host_s_do() -> None:
    """An AR(1) of 0.8: of forty steps the median is where it was said in nine of ten; by their spread alone in half."""
    chance = random.Random(0)
    held = []
    for _ in range(400):
        drift, times = chance.gauss(0, 100), []
        for _ in range(40):
            drift = 0.8 * drift + chance.gauss(0, 60)
            times.append(1000 + drift)
        report = StepTimes(1000.0, tuple(times), "device")
        assert report.uncertainty is not None
        held.append(abs(report.typical - 1000) <= report.uncertainty * report.typical)
    assert sum(held) / len(held) > 0.85


def test_what_is_sure_is_not_talked_about() -> None:
    """Neither are so few steps that nothing can be said."""
    assert StepTimes(1000.0, (999.0, 1000.0, 1001.0, 1002.0), "device").advice() is None
    assert StepTimes(1000.0, (900.0, 1100.0), "device").advice() is None
