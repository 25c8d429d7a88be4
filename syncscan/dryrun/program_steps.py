"""Find the ends of a program's steps in a dry run: its optimizer's calls, or the rounds of the loop that it repeats.

A call of torch is a look at the running frames. Between two looks a loop has come round where a frame went back to
an earlier instruction, or made the same call again. Once the simulated device has worked for a while, the outermost
loop that has come round a few times is what the program repeats; loops in a network's own code are its layers.
A frame that runs waits for those that it called: only what was entered since the last look is looked at anew, a few
frames of some sixty.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import NamedTuple

from syncscan.capture.optimizer_hook import has_optimizer
from syncscan.capture.stack_frames import line_of
from syncscan.model.libraries import package_of
from syncscan.source.loops import LoopLines, Loops

ENOUGH = 3
"""Rounds of a loop that is repeated."""
SET_UP = frozenset(
    "__get__ __set__ __len__ __deepcopy__ to cuda cpu half float bfloat16 type clone detach detach_ requires_grad_ "
    "size dim numel device is_contiguous is_floating_point is_pinned pin_memory element_size untyped_storage data_ptr "
    "set_ copy_ normal_ uniform_ fill_ zero_ erfinv_ mul_ add_ sub_ div_ clamp_ empty zeros ones full tensor as_tensor "
    "rand randn empty_like zeros_like ones_like manual_seed _has_compatible_shallow_copy_type _set_grad_enabled".split()
)
"""Calls that make, move and initialize a network's parameters: loops that do nothing else are preparation."""
LAYERS = 10
"""Multiple of that time after which a loop within a network counts too: a program may lie within one's `forward`."""
EACH, SELDOM = 1_000, 7
"""First calls that are looked at, each of them, and how many later calls share a look until the loop is chosen: a look
takes a third of what the rest of the dry run takes for a small op."""
AGAIN = 1_000
"""Looks after which a program that caught the stop is stopped again: what runs at its end is left in peace. One that
catches it time and again, in each round of a loop, is left less and less of it."""


class Patience(NamedTuple):
    """How long a program may run before the rounds of a loop count as its steps.

    `least` ops at any rate; then `ops`, or `seconds` of its thread since a loop first came round, whichever is first.
    Other processes of the machine change neither.
    """

    least: int
    ops: int
    seconds: float

    def is_over(self, ops: int, since: float) -> bool:
        return ops >= self.least and (ops >= self.ops or time.thread_time() - since >= self.seconds)


ALONE = Patience(500, 20_000, 5.0)
"""Without an optimizer: some 5 s on two cores, in which an outer loop may come round too."""
BESIDE_OPTIMIZER = Patience(2_000, 300_000, 60.0)
"""With an optimizer, which may step later: a rollout of 2,048 steps is some 120,000 ops."""


RepeatedLoop = tuple[CodeType, LoopLines]
"""A loop of a function, whose rounds may be the steps of a program."""


class ProgramRounds:
    """Looks at the program's frames at each call of torch, until `close`.

    `ops` returns how many ops the simulated device has run. `chosen` is called once with the loop, `round_began` at the
    begin of each later round of it.
    """

    def __init__(
        self, ops: Callable[[], int], chosen: Callable[[RepeatedLoop], None], round_began: Callable[[], None]
    ) -> None:
        import torch

        self._ops, self._chosen, self._round_began = ops, chosen, round_began
        self._layer = torch.nn.Module._call_impl.__code__
        self._loops = Loops()
        self._around: dict[tuple[int, int], tuple[CodeType, list[LoopLines]]] = {}
        self._returns: dict[tuple[int, int, int], tuple[CodeType, RepeatedLoop | None]] = {}
        self._frames = RunningFrames()
        self._rounds: Counter[RepeatedLoop] = Counter()
        self._worked = self._looks = 0
        self._last: dict[RepeatedLoop, int] = {}
        self._since = 0.0
        self._patience = ALONE
        self._open = True
        self.repeated: RepeatedLoop | None = None
        """The loop whose rounds are the steps, once it is known."""
        self._stop: Callable[[], None] | None = None
        self._next_stop, self._left_alone = 0, AGAIN

    def look(self, frame: FrameType | None, call: str) -> None:
        self._looks += 1
        if self._stop is not None and self._looks >= self._next_stop:
            self.stop_again(self._stop)
            self._stop()
        if not self._open or (self.repeated is None and self._looks > EACH and self._looks % SELDOM):
            return
        moved = self._frames.look(frame)
        if call not in SET_UP and not self._frames.set_up:
            self._worked = self._looks
        if moved is None or moved[2] > moved[1]:
            return
        came_round = self._came_round(*moved)
        if came_round is None:
            return
        if self.repeated is not None:
            if came_round == self.repeated:
                self._round_began()
            return
        if self._worked > self._last.get(came_round, 0):
            self._rounds[came_round] += 1
        self._last[came_round] = self._looks
        self._choose()

    def close(self) -> None:
        """Look for no loop, and let go of the program's frames: an optimizer has stepped, or the program is over."""
        self._open = False
        self._frames.clear()

    def stop_again(self, stop: Callable[[], None]) -> None:
        """Call this after a while at a look, and again: a program may catch what it raises, and go on."""
        self.close()
        self._stop, self._next_stop = stop, self._looks + self._left_alone
        self._left_alone = max(1, self._left_alone // 10)

    def _came_round(self, frame: FrameType, before: int, now: int) -> RepeatedLoop | None:
        """Return the innermost loop of a function that came round as it went back, or made the same call again."""
        code = frame.f_code
        key = id(code), before, now
        if key not in self._returns:
            was_in = line_of(code, before)
            loops = [loop for loop in self._loops_around(code, now) if loop.holds(was_in)]
            self._returns[key] = code, (code, loops[-1]) if loops else None
        return self._returns[key][1]

    def _loops_around(self, code: CodeType, instruction: int) -> list[LoopLines]:
        """Return the loops of a function around an instruction, outermost first; torch's and Python's don't count."""
        key = id(code), instruction
        if key not in self._around:
            own = package_of(code.co_filename) not in ("torch", "triton", "python")
            loops = self._loops[code.co_filename].around(line_of(code, instruction)) if own else []
            self._around[key] = code, [loop for loop in loops if loop.first >= code.co_firstlineno]
        return self._around[key][1]

    def _choose(self) -> None:
        """Choose the outermost running loop that has come round a few times, if the program has run long enough."""
        self._since = self._since or time.thread_time()
        ops, patience = self._ops(), self._patience
        if not patience.is_over(ops, self._since):
            return
        for_layers = Patience(0, LAYERS * patience.ops, LAYERS * patience.seconds)
        running = self._running(layers=for_layers.is_over(ops, self._since))
        repeated = next((loop for loop in running if self._rounds[loop] >= ENOUGH), None)
        if repeated is None:
            return
        if patience is ALONE and has_optimizer():
            self._patience = BESIDE_OPTIMIZER
            return
        self.repeated = repeated
        self._chosen(repeated)

    def _running(self, *, layers: bool) -> Iterator[RepeatedLoop]:
        """Yield the loops that run now, outermost first, those of a network's layers only if asked for."""
        for frame, instruction in zip(self._frames.frames, self._frames.instructions, strict=True):
            if frame.f_code is self._layer and not layers:
                return
            yield from ((frame.f_code, loop) for loop in self._loops_around(frame.f_code, instruction))


SETTING_UP = frozenset("__init__ reset_parameters _init_weights init_weights load_state_dict _apply".split())
"""Functions in which a network is built and filled; so are those of `torch.nn.init`."""
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Flags of functions whose frame is left and entered again, from anywhere."""


class RunningFrames:
    """The frames that run, outermost first, and the instruction that each of them is at.

    Each call of torch asks for them: their parts are in lists of their own, and few functions are called.
    """

    def __init__(self) -> None:
        self.frames: list[FrameType] = []
        self.instructions: list[int] = []
        self._setting_up: list[bool] = []
        """Whether a network is built in each frame or around it."""
        self._places: dict[FrameType, int] = {}
        self._init = importlib.import_module("torch.nn.init").normal_.__code__.co_filename

    @property
    def set_up(self) -> bool:
        return bool(self._setting_up) and self._setting_up[-1]

    def look(self, frame: FrameType | None) -> tuple[FrameType, int, int] | None:
        """Return the innermost frame that ran at the last look too, and the instructions it was and is at; or None."""
        places, entered, common = self._places, [], -1
        while frame is not None:
            common = places.get(frame, -1)
            if common >= 0 and not frame.f_code.co_flags & _RESUMED:
                break
            entered.append(frame)
            frame = frame.f_back
        else:
            common = -1
        common = self._resumed(common, entered)
        move = None
        if common >= 0:
            move = self.frames[common], self.instructions[common], self.frames[common].f_lasti
            self.instructions[common] = move[2]
        self._leave(common + 1)
        self._enter(entered)
        return move

    def clear(self) -> None:
        self._leave(0)

    def _resumed(self, common: int, entered: list[FrameType]) -> int:
        """Return the place of the innermost frame that ran before, with those that were left and entered again."""
        frames = self.frames
        while entered and common + 1 < len(frames) and frames[common + 1] is entered[-1]:
            if common >= 0 and frames[common].f_lasti != self.instructions[common]:
                break
            entered.pop()
            common += 1
        return common

    def _leave(self, at: int) -> None:
        for frame in self.frames[at:]:
            del self._places[frame]
        del self.frames[at:], self.instructions[at:], self._setting_up[at:]

    def _enter(self, entered: list[FrameType]) -> None:
        sets_up = self.set_up
        for frame in reversed(entered):
            code = frame.f_code
            sets_up = sets_up or code.co_name in SETTING_UP or code.co_filename == self._init
            self._places[frame] = len(self.frames)
            self.frames.append(frame)
            self.instructions.append(frame.f_lasti)
            self._setting_up.append(sets_up)
