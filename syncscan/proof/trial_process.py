"""Run a program for a proof: time its steps turn by turn, or take the fingerprint of its first ones.

The main program of the processes that a proof starts: `python -c BOOT ORDER`, with two pipes for orders and answers.
The program is a script, run as `python SCRIPT ARGS` would run it, whose steps are found as a capture finds them; or a
function of a file, each call of which is a step.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscan.capture import device, torch_hooks
from syncscan.capture.device import StepTimer, prefetched
from syncscan.capture.main_script import RunComplete, run_function, run_main
from syncscan.capture.optimizer_hook import OptimizerCall, OptimizerHook, StepMarks
from syncscan.capture.plan import Demand
from syncscan.capture.session import Session
from syncscan.capture.torch_hooks import Function, Method, replaced, unseen
from syncscan.errors import SyncscanError
from syncscan.patches import when_imported
from syncscan.proof.fingerprint import Fingerprinting
from syncscan.scratch import Scratch

SEED = 0
STOPS = 3
"""Attempts to end a script before its process is ended."""


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
    """Counts a program's steps and passes them to a receiver; `count` is how many there were."""

    def __init__(self, watch: Pacer | _StepFingerprints) -> None:
        self._watch = watch
        self.count = 0
        self._stops = 0
        self._pid = os.getpid()
        self._marks = StepMarks()
        self._hook: OptimizerHook | None = None

    def ended(self, returned: Any = None) -> None:
        if os.getpid() != self._pid:
            return
        self.count += 1
        if not self._watch.step(returned):
            self._finish()

    def find(self) -> None:
        """Find the steps of a script: where an optimizer's `step` returns, or where its own session marks them."""
        hook = self._hook = OptimizerHook(self._stepped)
        torch_hooks.in_child(hook.remove)
        Session.opened = self._adopt

    def _stepped(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        mark = self._marks.saw(optimizer, fixed=False)
        if mark is OptimizerCall.ANEW:
            self._restart()
        if mark is not OptimizerCall.NOTHING:
            self.ended()

    def _adopt(self, session: Session) -> None:
        """Use the step marks of a script that captures itself; nothing is captured here."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
            self._restart()
        session.demand = Demand(on_trigger=True)
        session.step = self.ended  # type: ignore[method-assign]

    def _restart(self) -> None:
        """Restart counting: steps are marked by something else from here."""
        self.count = 0
        self._watch.forget()

    def _finish(self) -> None:
        if self._stops == STOPS or threading.current_thread() is not threading.main_thread():
            os._exit(0)
        self._stops += 1
        raise RunComplete


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
    unseen("syncscan.proof")
    _seed()
    if order.delayed:
        when_imported("torch", _delay_copies)
    steps = Steps(_StepFingerprints(channel, order) if order.fingerprint else Pacer(channel))
    try:
        code = _run(order, steps)
    except SyncscanError as error:
        channel.send({"refused": error.message, "hint": error.hint})
        code = 2
    channel.send({"ended": code, "steps": steps.count})
    channel.close()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    sys.exit(code)


def _run(order: TrialOrder, steps: Steps) -> int:
    if order.function:
        del sys.path[0]  # what led to syncscan; the script's folder takes its place
        return run_function(order.target, order.function, steps.ended).code
    steps.find()
    return run_main(order.target, order.arguments, module=False).code


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


CYCLES = 10_000_000
"""Clock cycles of the device before each copy: 5 ms at 2 GHz, long beside what a host does between copy and read."""


def delay_copies() -> Callable[[], None]:
    """Delay the copies that torch is asked for from now on; return a function that puts everything back."""
    return replaced(("torch.Tensor", name, _delayed) for name in ("to", "cuda", "copy_"))


def _delayed(original: Function) -> Method:
    def copied(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
        if keywords.get("non_blocking") or any(given is True for given in arguments[1:]):
            _spin()
        return original(tensor, *arguments, **keywords)

    return Method(original, copied)


def _spin() -> None:
    """Keep the current stream busy, if the device is in use and no graph is captured."""
    cuda = importlib.import_module("torch").cuda
    if cuda.is_initialized() and not cuda.is_current_stream_capturing():
        cuda._sleep(CYCLES)


WARMUP = 10
"""Steps before the first request: kernels are loaded, algorithms chosen, memory allocated."""
SLOW_S, SLOW_WARMUP = 0.5, 3
"""Step time from which fewer warm-up steps must do, and their number."""
LEAD = 2
"""Steps of a turn before the timed ones, until the device has queued work again."""


class Channel:
    """Lines of JSON to and from the process that compares programs, over two pipes."""

    def __init__(self, orders: int, answers: int) -> None:
        for number in (orders, answers):
            os.set_inheritable(number, False)
        self._orders, self._answers = os.fdopen(orders, "rb"), os.fdopen(answers, "wb")

    def send(self, message: dict[str, Any]) -> None:
        """Write a line; a missing reader is no error of the program's."""
        with contextlib.suppress(OSError, ValueError):
            self._answers.write(json.dumps(message).encode() + b"\n")
            self._answers.flush()

    def receive(self) -> dict[str, Any] | None:
        """Return the next request; None when there are no more."""
        line = self._orders.readline()
        order: dict[str, Any] | None = json.loads(line) if line else None
        return order if order and order.get("steps") else None

    def close(self) -> None:
        self._answers.close()


class Pacer:
    """Pauses and times one program. `step` returns False when there are no more requests, and the program is to end."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._course = self._run()
        next(self._course)

    def step(self, returned: Any = None) -> bool:
        return next(self._course, False)

    def forget(self) -> None:
        """Ignore that a rarer optimizer marks steps from here: those before were warm-up."""

    def _run(self) -> Iterator[bool]:
        yield from self._warm_up()
        lead = LEAD + prefetched()
        self._channel.send({"ready": True, "lead": lead})
        while (order := self._channel.receive()) is not None:
            times = StepTimer(order["steps"], begin=False)
            for _ in range(lead):
                yield True
            times.mark()
            for _ in range(order["steps"]):
                yield True
                times.mark()
            taken = times.end()
            mean = statistics.fmean(taken.each) if taken.each else taken.mean
            self._channel.send({"mean_us": mean, "clock": taken.clock})

    def _warm_up(self) -> Iterator[bool]:
        yield True  # the first step begins when the program does: what comes before it isn't the step's
        began = time.perf_counter()
        for done in range(1, WARMUP):
            yield True
            spent = (time.perf_counter() - began) / done
            if done + 1 >= SLOW_WARMUP and spent > SLOW_S:
                break


def device_name() -> str:
    """Return the device that the program computes on, as a report names it."""
    torch = importlib.import_module("torch")
    return str(device.backend().get_device_name()) if device.used() else f"CPU, {torch.get_num_threads()} threads"
