"""Sampled functions inside each step tell a generation or a rollout from training."""

from __future__ import annotations

import pytest

from syncscan.facts.inner_phases import inner_phases
from syncscan.model.program_run import PhaseKind
from tests.host.test_sampled import BACKWARD, MAIN, MODULE, sampled

TRAINER = "/home/me/train.py:Trainer.step:31"
GENERATE = "/venv/lib/python3.12/site-packages/transformers/generation/utils.py:GenerationMixin.generate:2500"


def inside(*stack: str, count: int = 60) -> list[tuple[PhaseKind, float, str]]:
    """The phases of a step whose other part is a backward pass."""
    phases = inner_phases(sampled({stack: count, (MAIN, TRAINER, BACKWARD): 100 - count}))
    return [(kind, round(share, 2), place) for kind, share, place in phases]


def test_a_generation_in_each_step_is_a_phase() -> None:
    """A function of that name that calls a network."""
    assert inside(MAIN, TRAINER, GENERATE, MODULE) == [(PhaseKind.GENERATION, 0.6, "train.py:31")]


def test_an_environment_s_step_is_a_rollout() -> None:
    """It needs no network."""
    assert inside(MAIN, TRAINER, "/home/me/world.py:Env.step:9") == [(PhaseKind.ROLLOUT, 0.6, "train.py:31")]


@pytest.mark.parametrize(
    ("stack", "count"),
    [
        ((MAIN, TRAINER, "/home/me/train.py:generate:50"), 60),
        ((MAIN, TRAINER, MODULE, "/home/me/net.py:generate:5", MODULE), 60),
        ((MAIN, TRAINER, "/home/me/train.py:evaluate_actions:5", MODULE), 60),
        ((MAIN, TRAINER, GENERATE, MODULE), 5),
        ((MAIN, GENERATE, MODULE), 97),
    ],
    ids=["no network", "in a network", "trained", "little", "the step itself"],
)
def test_a_name_alone_makes_no_phase(stack: tuple[str, ...], count: int) -> None:
    """A generation calls a network and isn't called by one, and isn't all of the step."""
    assert inside(*stack, count=count) == []


def test_a_step_in_a_function_of_such_a_name_is_training() -> None:
    """A rollout runs no backward pass."""
    assert inner_phases(sampled({(MAIN, "/home/me/t.py:explore:5", BACKWARD): 60, (MAIN, TRAINER): 40})) == []


def test_nothing_is_told_without_samples() -> None:
    """Another profiler's recording has none."""
    assert inner_phases(None) == []
