"""Find the loop whose rounds are the steps of a program without optimizer steps, while it runs.

A thread looks some times a second where the main thread is. Once the device has been at work for a while without any
optimizer's step, the loops around that are counted: the outermost that comes round often enough is what the program
repeats. Where Python can't tell of a loop's rounds, the module that the loop calls is counted instead.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any, TypeVar

from syncscan.capture import device
from syncscan.capture.optimizer_hook import has_optimizer
from syncscan.capture.stack_frames import line_of, of_program, outward
from syncscan.capture.torch_hooks import ModuleCalls, unseen
from syncscan.facts.program_phases import Frame
from syncscan.model.libraries import in_package, package_of
from syncscan.source.loops import LoopLines, Loops

LOOK_S = 0.1
"""Interval between looks at the main thread; a look takes some 50 µs."""
QUIET_S = 2.0
"""How long the device must have worked without an optimizer's step."""
PATIENT_S = 20.0
"""That time if there is an optimizer, which may step later, after a compilation or a first evaluation."""
COUNT_S, LONG_COUNT_S = 1.0, 4.0
"""How long rounds are counted, at first and at most."""
OFTEN, ENOUGH = 5, 3
"""Rounds that a loop must complete in the first of these times, and in the second."""
HELD = 0.5
"""Fraction of the looks in which a loop must be active."""
SAY_S = 10.0
"""Time after which a message reports that no step has been seen."""
MODULE = "torch/nn/modules/module.py"
_WITHIN = (MODULE, "torch/_dynamo/eval_frame.py", "syncscan/capture/torch_hooks.py")
"""Files whose frames lie between a module's caller and what is called at its call."""
Key = TypeVar("Key")


class Repeats:
    """Looks for what a program repeats, until `close`, or until `stop` says that an optimizer has stepped.

    `chosen` is called on the looking thread with what the rounds are of, in words; `round_ended` on the main thread at
    the end of each later round. With `impatient`, it also says that no step has been seen where the device wasn't at
    work at all.
    """

    def __init__(
        self,
        chosen: Callable[[str], None],
        round_ended: Callable[[], None],
        say: Callable[[str], None],
        *,
        impatient: bool = True,
    ) -> None:
        self._chosen, self._round_ended, self._say = chosen, round_ended, say
        self._main = threading.main_thread().ident or 0
        self._over = threading.Event()
        self._loops = Loops()
        self._looks: deque[tuple[Frame, ...]] = deque(maxlen=int(QUIET_S / LOOK_S))
        self._modules: Counter[int] = Counter()
        self._module_of: dict[int, Any] = {}
        self._undo: Callable[[], None] = lambda: None
        self._began = time.monotonic()
        self._worked: float | None = None
        self._work = 0
        self._patience = QUIET_S
        self._has_checked = self._spoken = False
        self._impatient = impatient
        self._thread = threading.Thread(target=self._run, name="syncscan-repeats", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop looking, as steps are known; a loop whose rounds count as steps stays hooked."""
        self._over.set()

    def close(self) -> None:
        """Stop looking, and stop counting rounds."""
        self._over.set()
        undo, self._undo = self._undo, lambda: None
        undo()

    def _run(self) -> None:
        with contextlib.suppress(Exception):  # whatever a program has made of its modules and frames
            while not self._over.wait(LOOK_S):
                self._look()
                if self._due() and self._choose():
                    return
                self._tell()

    def _look(self) -> None:
        frame = sys._current_frames().get(self._main)
        frames = [(f.f_code, f.f_lineno or f.f_code.co_firstlineno) for f in outward(frame)]
        self._looks.append(of_program(frames[::-1]))
        module = _outermost_module(frame)
        if module is not None:
            self._modules[id(module)] += 1
            self._module_of[id(module)] = module
        if (work := _work()) != self._work or (device.backend() is None and module is not None):
            self._worked = self._worked or time.monotonic()
            self._work = work

    def _due(self) -> bool:
        if self._worked is None or time.monotonic() - self._worked < self._patience:
            return False
        if not self._has_checked:
            self._has_checked = True
            if has_optimizer():
                self._patience = PATIENT_S
                return False
        return True

    def _choose(self) -> bool:
        """Count the rounds of the active loops; return whether one is what the program repeats."""
        around = self._around()
        if can_watch() and around:
            return self._count_loops(around)
        return self._count_module() if self._modules else False

    def _around(self) -> list[tuple[CodeType, LoopLines]]:
        """Return the loops that contain most of the last samples, outermost first."""
        active: Counter[tuple[int, CodeType, LoopLines]] = Counter()
        for stack in self._looks:
            active.update(
                (depth, code, loop)
                for depth, (code, line) in enumerate(stack)
                if package_of(code.co_filename) not in ("torch", "triton", "python")
                for loop in self._loops[code.co_filename].around(line)
            )
        most = [key for key, count in active.items() if count >= HELD * len(self._looks)]
        return [(code, loop) for _, code, loop in sorted(most, key=lambda key: (key[0], key[2].first, -key[2].last))]

    def _count_loops(self, around: Sequence[tuple[CodeType, LoopLines]]) -> bool:
        counts = [0] * len(around)

        def count(number: int) -> None:
            counts[number] += 1

        counting = Rounds(around, count)
        if not counting.start():
            return False
        try:
            number = self._repeating(lambda: list(enumerate(counts)))
        finally:
            counting.close()
        if number is None or self._over.is_set():
            return False
        code, loop = around[number]
        rounds = Rounds([around[number]], lambda number: self._round_ended())
        self._chosen(f"an iteration of the loop at {PurePath(code.co_filename).name}:{loop.first}")
        self._undo = rounds.close
        return rounds.start()

    def _repeating(self, counts: Callable[[], Sequence[tuple[Key, int]]]) -> Key | None:
        """Return the first that completes enough rounds in time while the device is busy."""
        work = self._work
        for seconds, enough in ((COUNT_S, OFTEN), (LONG_COUNT_S - COUNT_S, ENOUGH)):
            until = time.monotonic() + seconds
            while time.monotonic() < until and not self._over.wait(LOOK_S):
                self._look()
            often = [key for key, count in counts() if count >= enough]
            if self._over.is_set() or (often and (self._work != work or device.backend() is None)):
                return often[0] if often else None
        return None

    def _count_module(self) -> bool:
        """Count the calls of the module most often called from outside any other, by the line that calls it.

        A program can call one model on several lines: once per batch, and again for each word that it generates. The
        outermost line that calls it often is the one that the program repeats.
        """
        module = self._module_of[self._modules.most_common(1)[0][0]]
        calls: Counter[tuple[int, Frame]] = Counter()  # by how many frames are around it, and what calls it
        counting = ModuleCalls(module, lambda: calls.update([_call(sys._getframe(1))]))
        if not counting.start():
            return False
        chosen = self._repeating(lambda: sorted(calls.copy().items(), key=lambda item: (item[0][0], -item[1])))
        counting.close()
        if chosen is None or self._over.is_set():
            return False
        caller = chosen[1]
        self._chosen(f"a call of {_name(module)} at {PurePath(caller[0].co_filename).name}:{caller[1]}")

        def count() -> None:
            if _caller(sys._getframe(1)) == caller:
                self._round_ended()

        rounds = ModuleCalls(module, count)
        self._undo = rounds.close
        return rounds.start()

    def _tell(self) -> None:
        """Tell the user once, after a while, that no step has been seen, and what is known."""
        if self._worked is None and not self._impatient:
            return
        waits = SAY_S if self._worked is not None else 2 * SAY_S  # something is imported yet, or compiled
        if self._spoken or time.monotonic() - self._began < max(waits, self._patience):
            return
        self._spoken = True
        self._say(
            "No optimizer has stepped in this process yet, and no loop that uses the device has repeated often enough"
            " to count as steps. The capture keeps waiting; press Ctrl-C to stop it, or mark steps"
            " with prof.step() of syncscan.profile."
        )


def _caller(frame: FrameType) -> Frame | None:
    """Return the code and line that call a module, from a frame within the call; None where nothing does."""
    outside = (f for f in outward(frame) if not f.f_code.co_filename.endswith(_WITHIN))
    return next(((f.f_code, f.f_lineno) for f in outside), None)


def _call(frame: FrameType) -> tuple[int, Frame]:
    return sum(1 for _ in outward(frame.f_back)), _caller(frame) or (frame.f_code, frame.f_lineno)


def _name(module: Any) -> str:
    """Return the name of a module's class; of a compiled one's, that of the program's."""
    return type(getattr(module, "_orig_mod", module)).__name__


def _outermost_module(frame: FrameType | None) -> Any:
    """Return the outermost module of torch on the stack; None without one."""
    calls = [f for f in outward(frame) if f.f_code.co_name == "_call_impl" and in_package(f.f_code.co_filename, MODULE)]
    return calls[-1].f_locals.get("self") if calls else None


def _work() -> int:
    """Return a number that grows while the device is busy; 0 without a device, or before its first use."""
    if not device.used():
        return 0
    with contextlib.suppress(Exception):
        return int(device.backend().memory_stats().get("allocation.all.allocated", 0))
    return 0


NAME = "syncscan"
_NUMBERS = (4, 3, 2, 5)
"""Tool ids for monitoring, those that debuggers and coverage don't use first."""


def can_watch() -> bool:
    """Return whether this Python reports single jumps, and has a free tool id."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(monitoring.get_tool(number) is None for number in _NUMBERS)


class Rounds:
    """Calls `ended` when a round of one of the loops is over, from `start` until `close`.

    A round ends where the loop jumps back to its header; one that `break` or an error leaves doesn't end. A loop is
    given by the function that it stands in and its lines; `ended` gets its place among them, on the loop's own thread.
    What that raises is raised in the loop.
    """

    def __init__(self, loops: Sequence[tuple[CodeType, LoopLines]], ended: Callable[[int], None]) -> None:
        self._loops, self._ended = loops, ended
        self._heads: dict[tuple[int, int, int], int] = {}
        self._number = -1

    def start(self) -> bool:
        """Start watching; return False where this Python can't, or no tool id is free."""
        monitoring: Any = getattr(sys, "monitoring", None)
        free = [] if monitoring is None else [n for n in _NUMBERS if monitoring.get_tool(n) is None]
        if not free:
            return False
        unseen()
        self._number = free[0]
        monitoring.use_tool_id(self._number, NAME)
        monitoring.register_callback(self._number, monitoring.events.JUMP, self._jumped)
        for code, _ in self._loops:
            monitoring.set_local_events(self._number, code, monitoring.events.JUMP)
        return True

    def close(self) -> None:
        if self._number < 0:
            return
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009  (of 3.12)
        for code, _ in self._loops:
            monitoring.set_local_events(self._number, code, 0)
        monitoring.register_callback(self._number, monitoring.events.JUMP, None)
        monitoring.free_tool_id(self._number)
        self._number = -1

    def _jumped(self, code: CodeType, at: int, to: int) -> Any:
        head = self._heads.get((id(code), at, to))
        if head is None:
            head = self._heads[id(code), at, to] = self._headed(code, at, to) if to < at else -1
        if head < 0:
            return getattr(sys, "monitoring").DISABLE  # noqa: B009  (of 3.12)
        self._ended(head)
        return None

    def _headed(self, code: CodeType, at: int, to: int) -> int:
        """Return the index of the loop that jumps back here; -1 for none.

        To its header; or, of a `while`, from its condition, which is compiled a second time at the end, to its body.
        """
        ends = line_of(code, at), line_of(code, to)
        for number, (its, loop) in enumerate(self._loops):
            if its is code and any(loop.first <= line < max(loop.body, loop.first + 1) for line in ends):
                return number
        return -1
