"""Keep the program's running frames from one call of torch to the next, and tell which of them has moved.

A frame that runs waits for those that it called: only what was entered since the last look is looked at anew, a few
frames of some sixty.
"""

from __future__ import annotations

import importlib
import inspect
from types import FrameType
from typing import NamedTuple

SETTING_UP = frozenset("__init__ reset_parameters _init_weights init_weights load_state_dict _apply".split())
"""Functions in which a network is built and filled; so are those of `torch.nn.init`."""
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Flags of functions whose frame is left and entered again, from anywhere."""


class Move(NamedTuple):
    """The innermost frame that ran at the last look too, with the instruction that it was at then and is at now."""

    frame: FrameType
    before: int
    now: int


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
        """Whether a network is built."""
        return bool(self._setting_up) and self._setting_up[-1]

    def look(self, frame: FrameType | None) -> Move | None:
        """Look at the frames again.

        Args:
            frame: the innermost.

        Returns:
            What moved; None if no frame ran at the last look too.
        """
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
            move = Move(self.frames[common], self.instructions[common], self.frames[common].f_lasti)
            self.instructions[common] = move.now
        self._leave(common + 1)
        self._enter(entered)
        return move

    def clear(self) -> None:
        """Let go of the frames."""
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
