"""Find the ends of training steps among calls of `Optimizer.step`."""

from __future__ import annotations

import enum
import weakref
from typing import Any

RARER = 8
"""Most steps of the marking optimizer before a newcomer's first step at which the newcomer may replace it."""


class OptimizerCall(enum.Enum):
    """Meaning of an optimizer's call for the count of steps."""

    STEP = "a training step ends here"
    NOTHING = "another optimizer's call within a step"
    ANEW = "a less frequent optimizer appeared: steps are counted by it from here on"


class StepMarks:
    """Determines which of a program's optimizers marks the steps.

    That is the one that steps least often, the first of them at a tie: with a discriminator and a generator that step
    in turn the first; with a critic that steps five times for each step of the generator the generator. A newcomer is
    rarer if the marking optimizer stepped at least twice, and at most `RARER` times, before it came. An optimizer that
    was thrown away loses its place to the next that steps. `name` is the class of the marking optimizer.
    """

    def __init__(self) -> None:
        self._marking: weakref.ref[Any] | None = None
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._count = 0
        self.name = ""

    def saw(self, optimizer: Any, *, fixed: bool) -> OptimizerCall:
        """Register a call.

        Args:
            optimizer: the optimizer whose `step` has returned.
            fixed: the profiler has started: the marking optimizer can't change any more.
        """
        marking = self._marking() if self._marking is not None else None
        if marking is optimizer:  # what nearly every call is, and it must cost next to nothing
            self._count += 1
            return OptimizerCall.STEP
        newcomer = optimizer not in self._known
        self._known.add(optimizer)
        if marking is None or (newcomer and not fixed and 2 <= self._count <= RARER):
            first = self._marking is None
            self._marking, self._count, self.name = weakref.ref(optimizer), 0, type(optimizer).__name__
            return OptimizerCall.STEP if first or fixed else OptimizerCall.ANEW
        return OptimizerCall.NOTHING
