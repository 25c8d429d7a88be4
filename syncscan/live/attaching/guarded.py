"""Guard a running process for some steps, and answer which lines waited for the device."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from syncscan.capture.optimizer_hook import OptimizerHook
from syncscan.capture.optimizer_steps import OptimizerCall, StepMarks
from syncscan.guarding.guard import Guard
from syncscan.guarding.rule_of_line import rule_of
from syncscan.guarding.seen import GuardedSync
from syncscan.live.hooks import safely

MOST_PLACES = 1000
"""Most lines that are distinguished."""


@dataclass
class GuardedSteps:
    """Syncs of some steps: how many steps ended, and for each line its function, rule, thread and number of syncs."""

    steps: int = 0
    syncs: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)


def guard_steps(steps: int, wait_s: float, armed: Callable[[], None] = lambda: None) -> GuardedSteps | None:
    """Guard every thread of this process until some optimizer steps have ended, or for a time.

    Syncs before the first whole step don't count, if a step ends at all. Everything is put back on return. Not for a
    thread that steps.

    Args:
        wait_s: seconds after which it ends in any case.
        armed: called once the guard watches.

    Returns:
        Its result; None where the process uses no device.
    """
    counting = _Counting(steps)
    guard = Guard(on_violation=counting.saw, threads="all", name="attached")
    with contextlib.ExitStack() as undo:
        hook = safely(lambda: OptimizerHook(counting.stepped))
        undo.callback(lambda: safely(hook.remove))
        undo.enter_context(guard)
        if not guard.armed:
            return None
        armed()
        counting.over.wait(wait_s)
        counting.over.set()
    return counting.result


class _Counting:
    """Counts steps and syncs, in the threads that make them."""

    def __init__(self, steps: int) -> None:
        self.over, self.result = threading.Event(), GuardedSteps()
        self._wanted, self._marks, self._began = steps, StepMarks(), False

    def stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        if self.over.is_set() or self._marks.saw(optimizer, fixed=False) is OptimizerCall.NOTHING:
            return
        if not self._began:
            self._began = True
            self.result.syncs.clear()
            return
        self.result.steps += 1
        if self.result.steps >= self._wanted:
            self.over.set()

    def saw(self, sync: GuardedSync) -> None:
        key = sync.place, sync.function, rule_of(sync) or sync.called or sync.kind, sync.thread
        if not self.over.is_set() and (key in self.result.syncs or len(self.result.syncs) < MOST_PLACES):
            self.result.syncs[key] += 1


__all__ = ["GuardedSteps", "guard_steps"]
