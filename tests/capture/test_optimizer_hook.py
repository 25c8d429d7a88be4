"""Which optimizer's calls are the steps."""

from __future__ import annotations

from syncscan.capture.optimizer_hook import RARER, OptimizerCall, StepMarks


class Optimizer:
    """Something that steps."""


def marks(sequence: str, *, fixed_from: int | None = None) -> str:
    """Play calls of optimizers named by letters; S for a step's end, A for anew, . for nothing."""
    optimizers = {letter: Optimizer() for letter in sequence}
    marks = StepMarks()
    letter_of = {OptimizerCall.STEP: "S", OptimizerCall.ANEW: "A", OptimizerCall.NOTHING: "."}
    return "".join(
        letter_of[marks.saw(optimizers[c], fixed=fixed_from is not None and i >= fixed_from)]
        for i, c in enumerate(sequence)
    )


def test_one_optimizer_ends_every_step() -> None:
    """Also with gradient accumulation, which calls it once for several batches."""
    assert marks("aaaa") == "SSSS"


def test_of_two_in_turn_the_first_counts() -> None:
    """A discriminator and a generator."""
    assert marks("dgdgdg") == "S.S.S."


def test_the_rarer_one_takes_over() -> None:
    """A critic that steps five times for one step of the generator."""
    assert marks("cccccgcccccgcccccg") == "SSSSSA.....S.....S"


def test_nobody_takes_over_once_the_profiler_has_started() -> None:
    """The steps of a schedule must be of one kind."""
    assert marks("cccccgccccc", fixed_from=3) == "SSSSS.SSSSS"


def test_a_very_rare_optimizer_is_no_step() -> None:
    """One that comes first after many steps belongs to something else."""
    assert marks("a" * (RARER + 2) + "b" + "aa")[-3:] == ".SS"


def test_a_thrown_away_optimizer_makes_room() -> None:
    """As where each epoch makes its own."""
    marks = StepMarks()
    first = Optimizer()
    assert marks.saw(first, fixed=True) is OptimizerCall.STEP
    del first
    assert marks.saw(Optimizer(), fixed=True) is OptimizerCall.STEP
