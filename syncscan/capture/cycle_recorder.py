"""Record the steps of one cycle with torch's profiler, and the facts that it can't see.

Everything that makes a step slower is switched on and off here: torch's profiler, the callbacks at synchronizations and
at garbage collections, the debug mode, CUPTI. Whatever way a cycle ends, all of it is off afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from syncscan.capture import device, sync_lines, torch_hooks
from syncscan.capture.cupti import Attachment
from syncscan.capture.plan import Plan
from syncscan.capture.torch_hooks import unseen

Json = dict[str, Any]


def profiling() -> bool:
    """Return whether a profiler of torch's is on; starting another would silently discard the recordings of both."""
    import torch

    return bool(torch.autograd._profiler_enabled())


class CycleRecorder:
    """One cycle under the profiler.

    `first` is the number of its first step, for the trace's `ProfilerStep#N`; `warmup` steps come before the recorded
    ones. `yield_to` is called when the program starts a profiler of its own during the cycle, before that one starts.
    """

    def __init__(self, plan: Plan, first: int, warmup: int, yield_to: Callable[[], None]) -> None:
        self._plan, self._first, self._warmup = plan, first, warmup
        self.cupti = Attachment()
        self._yield_to = yield_to
        self._ended = 0
        self._profiler: Any = None
        self._garbage = Garbage()
        self._undo = ExitStack()

    @property
    def recording(self) -> bool:
        return self._profiler is not None and self._ended >= self._warmup

    def start(self) -> None:
        self._undo.callback(torch_hooks.in_child(self._forked))
        self._undo.callback(self.cupti.release)
        self._profiler = self._make_profiler()
        self._undo.callback(self._stop)
        self._do(self._profiler.__enter__)
        self._undo.callback(self._alone())
        self._undo.callback(sync_lines.end)
        self._undo.callback(self._garbage.close)
        self._follow()

    def step(self) -> None:
        self._ended += 1
        self._do(self._profiler.step)
        self._follow()

    def finish(self, *, cut: bool) -> tuple[Any, Json]:
        """End the cycle: switch everything off, and return the profiler and the callbacks' records."""
        profiler, number = self._profiler, self._first + self._ended
        recording = sync_lines.end()  # before the profiler's own closing synchronization calls back
        self.close()
        taken: Json = {"lines": None, "events": [], "unfinished_step": number if cut else None}
        taken["collections"] = [list(collection) for collection in self._garbage.collections]
        if recording is not None:
            taken["lines"] = sync_lines.lines_table(recording)
            taken["events"] = [list(event) for event in recording.events]
        return profiler, taken

    def close(self) -> None:
        """Switch everything off, in any state and despite failures."""
        try:
            self._undo.close()
        finally:
            self._profiler = None

    def _make_profiler(self) -> Any:
        from torch import profiler as torch_profiler

        profiler = torch_profiler.profile(
            schedule=functools.partial(self._action, torch_profiler.ProfilerAction),
            with_stack=self._plan.stacks,
            record_shapes=self._plan.shapes,
        )
        profiler.step_num = self._first
        return profiler

    def _action(self, actions: Any, number: int) -> Any:
        """Return torch's profiler action for a step; it requests step 0 before it knows the first number."""
        return actions.WARMUP if max(0, number - self._first) < self._warmup else actions.RECORD

    def _follow(self) -> None:
        """Start what records facts that the profiler can't see for the coming step: collections, and the lines."""
        if self.recording:
            self._garbage.open()
            if device.backend() is not None:
                sync_lines.begin()

    def _do(self, action: Callable[[], Any]) -> None:
        """Run an action without torch's warning that events are cleared between cycles, which some versions give."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Profiler clears events at the end of each cycle")
            action()

    def _stop(self) -> None:
        """Stop torch's profiler; in a warm-up step torch would start it first, only to stop it at once.

        Starting attaches CUPTI, with threads of its own: they must be there before the one that lets go is looked for.
        """
        from torch.profiler import ProfilerAction

        profiler = self._profiler
        with ExitStack() as stop:  # runs from its last line to its first, all of it though one fails
            stop.callback(profiler.__exit__, None, None, None)
            stop.callback(self.cupti.before_stop)
            if profiler.profiler is not None and not self.recording:
                profiler.start_trace()
                profiler.current_action = ProfilerAction.RECORD

    def _alone(self) -> Callable[[], None]:
        """Give way to a profiler of the program's own, instead of both being ended."""
        from torch.autograd.profiler import profile

        original = profile._prepare_trace

        @functools.wraps(original)
        def prepare(started: Any) -> Any:
            self._yield_to()
            return original(started)

        def restore() -> None:
            profile._prepare_trace = original

        profile._prepare_trace = prepare
        return restore

    def _forked(self) -> None:
        """Undo everything in a forked child: no recording may continue, and the profiler mustn't be touched."""
        import torch

        sync_lines.end()
        self._garbage.close()
        torch.autograd._enable_record_function(False)


SHORT_NS = 5_000
"""Shorter collections are dropped: one of the youngest generation takes 1 to 20 µs and occurs several times per step.
"""

Collection = tuple[int, int, int, int]
"""Begin and end (epoch ns), native thread, generation."""


class Garbage:
    """Collections between `open` and `close`; both can be called at any time and more than once."""

    def __init__(self) -> None:
        self.collections: list[Collection] = []
        self._begun = 0
        self._open = False

    def open(self) -> None:
        if not self._open:
            self._open, self._begun = True, 0
            unseen()
            gc.callbacks.append(self._call)

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(ValueError):  # the program may have emptied the list
            gc.callbacks.remove(self._call)

    def _call(self, phase: str, info: dict[str, Any]) -> None:
        """Note a begin, or store a finished collection; collections never nest."""
        now = time.time_ns()
        if phase == "start":
            self._begun = now
            return
        begun, self._begun = self._begun, 0
        if begun and now - begun >= SHORT_NS:
            self.collections.append((begun, now, threading.get_native_id(), int(info.get("generation", 0))))
