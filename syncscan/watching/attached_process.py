"""Carry out an order in the attached process, on a thread of its own: its main thread isn't held."""

from __future__ import annotations

import functools
import sys
import traceback
from pathlib import Path

from syncscan.capture.plan import Plan
from syncscan.capture.script_capture import ScriptRun
from syncscan.errors import SyncscanError
from syncscan.watching.attach import Order, answer
from syncscan.watching.single_capture import SingleCapture, safely
from syncscan.watching.start import watch
from syncscan.watching.watch import Watch


def carry_out(folder: str) -> None:
    """Carry out the folder's order; errors are answered and never reach the program."""
    place = Path(folder)
    try:
        order = Order.read(place)
        actions = {"capture": _capture, "watch": _watch, "stop": _stop}
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
    safely(lambda: SingleCapture(Path(order.out), plan, done, wait_s=order.wait_s, say=say))
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


def _stop(folder: Path, order: Order) -> None:
    running = Watch.running
    if running is None:
        answer(folder, failed="The process has no watch.")
        return
    running.stop_elsewhere()
    answer(folder, done=[str(running.path)], lost=running.lost, failed="")
