"""The running frames: which of them has moved since the last look."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

from syncscan.dryrun.program_steps import Move, RunningFrames


class Seen:
    """Looks at the frames of the functions that call it, and keeps what moved."""

    def __init__(self) -> None:
        self.frames = RunningFrames()
        self.moves: list[Move | None] = []

    def __call__(self) -> None:
        self.moves.append(self.frames.look(sys._getframe(1)))

    @property
    def functions(self) -> list[str]:
        """The function that moved at each look but the first."""
        return [move.frame.f_code.co_name if move else "" for move in self.moves[1:]]

    @property
    def back(self) -> list[bool]:
        """Whether it went back, or stayed, at each look but the first."""
        return [move is not None and move.now <= move.before for move in self.moves[1:]]


def inner(seen: Seen) -> None:
    seen()
    seen()


def outer(seen: Seen) -> None:
    for _ in range(2):
        inner(seen)


def looks(seen: Seen) -> Iterator[int]:
    while True:
        seen()
        yield 0


def test_the_innermost_frame_that_ran_before_has_moved() -> None:
    """Within a call it is the function itself; when that was left and entered again, its caller, which went back."""
    seen = Seen()
    outer(seen)
    assert seen.functions == ["inner", "outer", "inner"]
    assert seen.back == [False, True, False]


def test_a_generator_that_another_line_resumes_is_not_its_loop() -> None:
    """Its frame is the same one, but its caller has moved on."""
    seen = Seen()
    values = looks(seen)
    next(values)
    next(values)
    assert seen.functions == ["test_a_generator_that_another_line_resumes_is_not_its_loop"]
    assert seen.back == [False]


def test_a_generator_that_one_line_resumes_goes_round() -> None:
    seen = Seen()
    for _ in zip(range(3), looks(seen), strict=False):
        pass
    assert seen.functions == ["looks"] * 2
    assert seen.back == [True] * 2


def test_what_runs_in_a_constructor_sets_a_network_up() -> None:
    """Also what it calls; not what runs after it."""
    states = []

    class Net:
        def __init__(self) -> None:
            self.fill()

        def fill(self) -> None:
            seen()
            states.append(seen.frames.set_up)

    seen = Seen()
    Net()
    seen()
    assert [*states, seen.frames.set_up] == [True, False]
