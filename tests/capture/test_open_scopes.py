"""A step ends where no scope is open that it opened."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from syncscan.capture.script_capture import ScopeWatch


class Scope:
    """Stands in for `record_function`."""

    def __enter__(self) -> Scope:
        return self

    def __exit__(self, *error: object) -> None:
        pass


class Watched:
    """A watch on `Scope` that notes what happens in which order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.watch = ScopeWatch(lambda: self.log.append("end"))
        self.watch.watch(Scope)

    def optimizer(self) -> None:
        with Scope():
            self.watch.end_step()
            self.log.append("asked")


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    yield watched
    watched.watch.unwatch()


def test_the_end_waits_for_the_optimizer_s_own_scope(watched: Watched) -> None:
    """Torch's hook is called inside it."""
    watched.optimizer()
    assert watched.log == ["asked", "end"]


def test_the_end_waits_for_a_scope_around_the_optimizer(watched: Watched) -> None:
    """`with record_function("optimizer"): optimizer.step()`."""
    with Scope():
        watched.optimizer()
        watched.log.append("left")
    assert watched.log == ["asked", "left", "end"]


def test_a_scope_around_the_whole_loop_does_not_count(watched: Watched) -> None:
    """Only the first step, whose begin it saw, waits longer; it is granted with the second."""
    with Scope():
        for _ in range(3):
            watched.optimizer()
    assert watched.log == ["asked", "end", "asked", "asked", "end"]


def test_without_scopes_the_end_is_at_once(watched: Watched) -> None:
    """As for an optimizer that opens none."""
    watched.watch.end_step()
    assert watched.log == ["end"]


def test_other_threads_scopes_do_not_count(watched: Watched) -> None:
    """Their slices lie on tracks of their own."""
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with Scope():
            entered.set()
            leave.wait(120)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(120)
    watched.optimizer()
    leave.set()
    thread.join()
    assert watched.log == ["asked", "end"]


def test_the_class_gets_its_methods_back() -> None:
    """Nothing of the watch stays."""
    enter = Scope.__enter__
    watched = Watched()
    watched.watch.unwatch()
    assert Scope.__enter__ is enter
