"""Run a program for a proof: time its steps turn by turn, or take the fingerprint of its first ones.

The main program of the processes that a proof starts: `python -c BOOT ORDER`, with two pipes for orders and answers.
The program is a script, run as `python SCRIPT ARGS` would run it, whose steps are found as a capture finds them; or a
function of a file, each call of which is a step.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscan.capture import fork
from syncscan.capture.delays import delay_copies
from syncscan.capture.fingerprint import Fingerprinting
from syncscan.capture.main_script import function_of, run_main
from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks
from syncscan.capture.paced_steps import Channel, Pacer, device_name
from syncscan.capture.plan import Demand
from syncscan.capture.session import Session
from syncscan.errors import SyncscanError
from syncscan.patches import when_imported
from syncscan.scratch import Scratch

SEED = 0
STOPS = 3
"""Attempts to end a script before its process is ended."""


class TrialComplete(BaseException):
    """Unwinds the program when it is no longer needed; a BaseException, so that `except Exception` lets it through."""


@dataclass(frozen=True, slots=True)
class TrialOrder:
    """The program to run, and what for.

    `function` is empty for a script. `fingerprint` is how many seeded steps are wanted of it, 0 where steps are to be
    timed; `rounded` moves the parameters by a rounding error first, `delayed` delays each non-blocking copy. `moved`
    leads from a folder of the user's to the one that replaces it. `scratch` and `layers` are the kind and the folders
    of the view that it writes into (`scratch.Scratch`), empty where it writes into the user's files; `patched` are
    files that have the text of another there.
    """

    target: str
    function: str
    arguments: list[str]
    fingerprint: int
    rounded: bool
    delayed: bool
    moved: list[str]
    patched: list[tuple[str, str]]
    scratch: str
    layers: list[str]


class _StepFingerprints:
    """Takes the fingerprint of a number of steps, and sends it."""

    def __init__(self, channel: Channel, order: TrialOrder) -> None:
        self._channel, self._steps, self._moved = channel, order.fingerprint, order.moved
        self._taken = Fingerprinting(rounded=order.rounded)
        self._left = self._steps

    def step(self, returned: Any = None) -> bool:
        if self._left:
            self._taken.step(returned)
            self._left -= 1
            if self._left == 0:
                result = {"fingerprint": self._taken.result(), "device": device_name()}
                self._channel.send({**result, "strays": strays(self._moved)})
                self._taken.leave()
        return self._left > 0

    def forget(self) -> None:
        if self._left:
            self._left = self._steps
            self._taken.forget()


class Steps:
    """Counts a program's steps and passes them to a receiver.

    `count` is how many there were.
    """

    def __init__(self, watch: Pacer | _StepFingerprints) -> None:
        self._watch = watch
        self.count = 0
        self._stops = 0
        self._pid = os.getpid()

    def ended(self, returned: Any = None) -> None:
        if os.getpid() != self._pid:
            return
        self.count += 1
        if not self._watch.step(returned):
            self._finish()

    def anew(self) -> None:
        """Restart counting: steps are marked by something else from here."""
        self.count = 0
        self._watch.forget()

    def _finish(self) -> None:
        if self._stops == STOPS or threading.current_thread() is not threading.main_thread():
            os._exit(0)
        self._stops += 1
        raise TrialComplete


class _ScriptSteps:
    """Finds the steps of a script: where an optimizer's `step` returns, or where its own session marks them."""

    def __init__(self, steps: Steps) -> None:
        self._steps, self._marks, self._own = steps, StepMarks(), False
        self._hook = OptimizerHook(self._stepped)
        fork.in_child(self._unhook)
        Session.opened = self._adopt

    def _unhook(self) -> None:
        self._hook.remove()
        Session.opened = None

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        if self._own:
            return
        mark = self._marks.saw(optimizer, fixed=False)
        if mark is OptimizerCall.ANEW:
            self._steps.anew()
        if mark is not OptimizerCall.NOTHING:
            self._steps.ended()

    def _adopt(self, session: Session) -> None:
        """Use the step marks of a script that captures itself; nothing is captured here."""
        if not self._own:
            self._own = True
            self._steps.anew()
        session.demand = Demand(on_trigger=True)
        session.step = self._steps.ended  # type: ignore[method-assign]


def _delay_copies(torch: object) -> None:
    delay_copies()


def main() -> None:
    """Run one request; results go through the pipe, the program's output goes where it prints it."""
    order = TrialOrder(**json.loads(sys.argv[1]))
    channel = Channel(int(sys.argv[2]), int(sys.argv[3]))
    del sys.argv[1:]
    if order.scratch:
        Scratch(order.scratch, tuple(map(Path, order.layers))).enter(dry=False)
        for path, text in order.patched:
            Path(path).write_bytes(Path(text).read_bytes())
    if order.moved:  # imports from a folder of the user's come from the one that replaces it
        sys.path[:] = [_instead(entry, order.moved) or entry for entry in sys.path]
    _seed()
    if order.delayed:
        when_imported("torch", _delay_copies)
    steps = Steps(_StepFingerprints(channel, order) if order.fingerprint else Pacer(channel))
    try:
        code = _run_function(order, steps) if order.function else _run_script(order, steps)
    except SyncscanError as error:
        channel.send({"refused": error.message, "hint": error.hint})
        code = 2
    channel.send({"ended": code, "steps": steps.count})
    channel.close()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    sys.exit(code)


def _run_script(order: TrialOrder, steps: Steps) -> int:
    _ScriptSteps(steps)
    return run_main(order.target, order.arguments, module=False, ends_quietly=TrialComplete).code


def _run_function(order: TrialOrder, steps: Steps) -> int:
    del sys.path[0]  # what led to syncscan; the script's folder takes its place
    try:
        for returned in _calls(function_of(order.target, order.function)):
            steps.ended(returned)
    except TrialComplete:
        return 0
    except SyncscanError:
        raise
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException as error:
        traceback.print_exception(type(error), error, _from(error, order.target))
        return 1
    return 0


def _calls(function: Callable[[], Any]) -> Iterator[Any]:
    """Yield the result of each call of the step: of the function, or of the one that it returns at its first call.

    A function that makes a step sets up what all steps share, as a model and its optimizer.
    """
    first = function()
    step = first if callable(first) else function
    if step is function:
        yield first
    while True:
        yield step()


def _from(error: BaseException, script: str) -> Any:
    """Return the traceback from the script's first frame on."""
    tb, path = error.__traceback__, Path(script).resolve()
    while tb is not None and Path(tb.tb_frame.f_code.co_filename).resolve() != path:
        tb = tb.tb_next
    return tb


def _seed() -> None:
    """Seed Python, NumPy and torch as soon as they are imported; nothing else of the program is changed."""
    random.seed(SEED)
    when_imported("numpy", lambda numpy: numpy.random.seed(SEED))
    when_imported("torch", lambda torch: torch.manual_seed(SEED))


def _instead(path: str, moved: list[str]) -> str | None:
    """Return the corresponding path in the other folder, if it exists there; None otherwise."""
    top, place = Path(moved[0]), Path(moved[1])
    try:
        within = Path(path).absolute().relative_to(top)
    except ValueError:
        return None
    return str(place / within) if path and (place / within).exists() else None


def strays(moved: list[str]) -> list[str]:
    """Return the files that were imported from the user's folder though the other one has them too."""
    if not moved:
        return []
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return sorted({f for f in files if isinstance(f, str) and _instead(f, moved)})
