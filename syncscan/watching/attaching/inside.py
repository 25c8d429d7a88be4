"""Carry out an order in the attached process, on a thread of its own: its main thread isn't held."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks
from syncscan.capture.plan import Plan
from syncscan.capture.script import ScriptRun
from syncscan.capture.stack_frames import line_of
from syncscan.errors import SyncscanError
from syncscan.facts.program_phases import name_of
from syncscan.guarding.guard import Guard
from syncscan.guarding.guarded_sync import GuardedSync, rule_of
from syncscan.watching.attaching.requests import Order, answer
from syncscan.watching.hooks import safely
from syncscan.watching.once import Once
from syncscan.watching.sampler import stack_of
from syncscan.watching.start import watch
from syncscan.watching.thread_position import PositionLookup, ThreadPosition
from syncscan.watching.watch import Watch

MOST_FRAMES = 40
"""Most frames of a thread in a dump."""


def carry_out(folder: str) -> None:
    """Carry out the folder's order; errors are answered and never reach the program."""
    place = Path(folder)
    try:
        order = Order.read(place)
        actions = {"capture": _capture, "watch": _watch, "stop": _stop, "dump": _dump, "guard": _guard}
        actions[order.action](place, order)
    except SyncscanError as error:
        answer(place, failed=str(error))
    except Exception as error:
        trace = traceback.format_exc(limit=-3)
        answer(place, failed=f"{type(error).__name__}: {error}", trace=trace)


def _capture(folder: Path, order: Order) -> None:
    if "torch" not in sys.modules:
        answer(folder, failed="The process hasn't imported torch.")
        return

    def done(run: ScriptRun) -> None:
        why = "no step ended: no optimizer stepped, and no loop that uses the device repeated"
        paths = [str(path) for path in run.paths]
        answer(
            folder, done=paths, steps=run.steps, marked_by=run.marked_by, failed=run.failed or ("" if paths else why)
        )

    # A settled, an unrecorded and a few timed steps first: the report compares with the step as it is.
    plan = Plan(1, order.warmup, order.steps, 1, 10)
    say = functools.partial(_say, folder)
    safely(lambda: Once(Path(order.out), plan, done, wait_s=order.wait_s, say=say))
    answer(folder, begun="capture")


def _say(folder: Path, sentence: str) -> None:
    answer(folder, said=sentence)


def _watch(folder: Path, order: Order) -> None:
    started = watch(
        order.out,
        interval=order.interval,
        capture_on_alarm=order.capture_on_alarm,
    )
    safely(started.start)
    if started.lost:
        started.stop_elsewhere()
        answer(folder, failed=f"the watch can't write to {started.path}: is the disk full?")
        return
    answer(folder, begun="watch", done=[str(started.path)], failed="")


def _guard(folder: Path, order: Order) -> None:
    if "torch" not in sys.modules:
        answer(folder, failed="The process hasn't imported torch.")
        return
    armed = functools.partial(answer, folder, begun="guard")
    result = guard_steps(order.steps, order.wait_s, armed)
    if result is None:
        answer(folder, failed="The process has no device to wait for.")
        return
    steps, counts = result
    syncs = [{"count": count, "where": where} for where, count in counts.most_common()]
    answer(folder, done=[], syncs=syncs, steps=steps, failed="")


def _stop(folder: Path, order: Order) -> None:
    running = Watch.running
    if running is None:
        answer(folder, failed="The process has no watch.")
        return
    running.stop_elsewhere()
    answer(folder, done=[str(running.path)], lost=running.lost, failed="")


def _dump(folder: Path, order: Order) -> None:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    main, own = threading.main_thread().ident, threading.get_ident()
    # All stacks before anything is looked up: a file that is read lets the threads go on, and their frames change.
    stacks = [(ident, stack_of(frame)) for ident, frame in sys._current_frames().items() if ident != own]
    places = PositionLookup(since=time.time())
    rows = [{**_row(stack, places(stack)), "name": names.get(i, ""), "main": i == main} for i, stack in stacks]
    answer(folder, threads=sorted(rows, key=lambda row: not row["main"]))


def _row(stack: Sequence[Any], position: ThreadPosition | None) -> dict[str, Any]:
    frames = [
        (code.co_filename, line_of(code, at), name_of(code)) for code, at in zip(stack[::2], stack[1::2], strict=True)
    ]
    return {
        "kind": position.kind if position and position.sure else "host",
        "rule": position.rule if position and position.sure else "",
        "frames": frames[:MOST_FRAMES],
    }


MOST_PLACES = 1000
"""Most lines that are distinguished."""
Where = tuple[str, str, str, str]
"""A sync's line, function, rule and thread."""


def guard_steps(
    steps: int, wait_s: float, armed: Callable[[], None] = lambda: None
) -> tuple[int, Counter[Where]] | None:
    """Guard every thread of this process until some optimizer steps have ended, or for a time.

    Syncs before the first whole step don't count, if a step ends at all. Everything is put back on return. Not for a
    thread that steps.

    Args:
        wait_s: seconds after which it ends in any case.
        armed: called once the guard watches.

    Returns:
        How many steps ended, and the number of syncs at each place; None where the process uses no device.
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
    return counting.steps, counting.syncs


class _Counting:
    """Counts steps and syncs, in the threads that make them."""

    def __init__(self, steps: int) -> None:
        self.over = threading.Event()
        self.steps, self.syncs = 0, Counter[Where]()
        self._wanted, self._marks, self._began = steps, StepMarks(), False

    def stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        if self.over.is_set() or self._marks.saw(optimizer, fixed=False) is OptimizerCall.NOTHING:
            return
        if not self._began:
            self._began = True
            self.syncs.clear()
            return
        self.steps += 1
        if self.steps >= self._wanted:
            self.over.set()

    def saw(self, sync: GuardedSync) -> None:
        key = sync.place, sync.function, rule_of(sync) or sync.called or sync.kind, sync.thread
        if not self.over.is_set() and (key in self.syncs or len(self.syncs) < MOST_PLACES):
            self.syncs[key] += 1
