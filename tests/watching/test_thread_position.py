"""A stack leads to the program's line, and to what the thread waits for there."""

from __future__ import annotations

import contextlib
import dis
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from syncscan.watching.sampler import stack_of
from syncscan.watching.thread_position import MOST_KNOWN, PositionLookup, ThreadPosition
from tests.until import until

pytest.importorskip("torch")

exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns")


@pytest.fixture
def wait() -> Iterator[Callable[..., object]]:
    """A call that waits in C, as a read-back does, until the test is over."""
    lock = threading.Lock()
    lock.acquire()
    yield lock.acquire
    lock.release()


def stack_in(run: Callable[[], object], *files: str) -> list[Any]:
    """Return the stack of a thread that is in `run`, once it waits in the first of these files below the others.

    It is past the beginning of a function there: the next place at which Python looks at other threads is the wait.
    """
    files = files or ("program.py",)

    def quietly() -> None:
        with contextlib.suppress(Exception):
            run()

    thread = threading.Thread(target=quietly, daemon=True)

    def frame_that_waits() -> FrameType | None:
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is None or frame.f_lineno == frame.f_code.co_firstlineno:
            return None
        around = [Path(code.co_filename).name for code in stack_of(frame)[::2]]
        return frame if around[0] == files[0] and {*files} <= {*around} else None

    thread.start()
    return stack_of(until(frame_that_waits))


def program(folder: Path, text: str, **names: object) -> Callable[[], object]:
    """Return the function `run` of a program's file, as if it had been written long ago."""
    file = folder / "program.py"
    file.write_text(text)
    os.utime(file, (1e9, 1e9))
    given: dict[str, Any] = dict(names)
    exec(compile(text, str(file), "exec"), given)
    run: Callable[[], object] = given["run"]
    return run


@exact
def test_a_call_that_reads_back_waits_for_the_device(tmp_path: Path, wait: Callable[..., object]) -> None:
    """By its name, where no more is known of the tensor."""
    loss = SimpleNamespace(item=wait)
    run = program(tmp_path, "def run():\n    a = 1\n    return a + loss.item()\n", loss=loss)
    stand = PositionLookup()(stack_in(run))
    assert stand is not None
    assert (Path(stand.file).name, stand.line, stand.function) == ("program.py", 3, "run")
    assert (stand.kind, stand.rule) == ("device", "item")


def test_a_line_that_lint_knows_waits_for_the_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: Callable[..., object]
) -> None:
    """A truth value has no name to tell it by: the shape of the source does."""
    text = (
        "import torch\n"
        "def run():\n"
        "    for x, y in loader:\n"
        "        loss = model(x)\n"
        "        if torch.isnan(loss).any():\n"
        "            return\n"
        "        loss.backward()\n"
    )
    monkeypatch.setattr("torch.isnan", wait)
    run = program(tmp_path, text, loader=[(0, 0)], model=lambda x: True)
    stand = PositionLookup()(stack_in(run))
    assert stand is not None
    assert (stand.line, stand.kind, stand.rule) == (5, "device", "nan-guard")


def test_a_line_that_works_is_the_host_s(tmp_path: Path, wait: Callable[..., object]) -> None:
    """Sleep is no wait for a device."""
    run = program(tmp_path, "def run():\n    time.sleep(True)\n", time=SimpleNamespace(sleep=wait))
    stand = PositionLookup()(stack_in(run))
    assert stand is not None
    assert (stand.line, stand.kind) == (2, "host")


def test_a_source_that_changed_since_tells_nothing(tmp_path: Path, wait: Callable[..., object]) -> None:
    """Its lines are not those that run."""
    loss = SimpleNamespace(item=wait)
    run = program(tmp_path, "def run():\n    return loss.item()\n", loss=loss)
    stand = PositionLookup(since=1e9 - 10)(stack_in(run))
    assert stand is not None
    assert (stand.line, stand.kind) == (2, "host")


def test_a_source_from_a_clock_that_is_ahead_is_read(tmp_path: Path, wait: Callable[..., object]) -> None:
    """A file of a time to come hasn't changed since: another machine wrote it."""
    loss = SimpleNamespace(item=wait)
    run = program(tmp_path, "def run():\n    return loss.item()\n", loss=loss)
    os.utime(run.__code__.co_filename, (time.time() + 3600,) * 2)
    stand = PositionLookup()(stack_in(run))
    assert stand is not None
    assert (stand.line, stand.kind) == (2, "device")


def test_a_loader_s_consumer_waits_for_input(tmp_path: Path) -> None:
    """Whatever of the standard library it waits in, torch's loader is further out; the line is the program's."""
    file = "/usr/lib/python3/site-packages/torch/utils/data/dataloader.py"
    batches: queue.Queue[int] = queue.Queue()
    given: dict[str, Any] = {"queue": batches}
    exec(compile("def _try_get_data():\n    queue.get()\n", file, "exec"), given)
    text = "def run():\n    try:\n        get()\n    except Exception:\n        pass\n"
    run = program(tmp_path, text, get=given["_try_get_data"])
    stand = PositionLookup()(stack_in(run, "threading.py", "queue.py", "dataloader.py"))
    batches.put(1)
    assert stand is not None
    assert (Path(stand.file).name, stand.line, stand.kind) == ("program.py", 3, "input")


def test_an_empty_stack_is_nowhere() -> None:
    assert PositionLookup()([]) is None


def test_what_is_known_is_bounded() -> None:
    """A program that makes functions without end doesn't grow the watch."""
    places = PositionLookup()
    for number in range(MOST_KNOWN + 10):
        places([compile("pass", f"made{number}.py", "exec"), 0])
    assert len(places._known) <= MOST_KNOWN


@exact
@pytest.mark.parametrize(
    ("expression", "rule"),
    [("float(loss)", "item"), ("loss.cpu()", "cpu"), ('loss.to("cpu")', ""), ("loss.equal(loss)", "equal")],
)
def test_a_name_that_other_values_have_too_is_less_sure(tmp_path: Path, expression: str, rule: str) -> None:
    """It is a wait only where a sample shows that Python didn't run."""

    class Loss:
        cpu = to = equal = staticmethod(lambda *words: 0)

    run = program(tmp_path, f"def run():\n    return {expression}\n", loss=Loss(), float=lambda loss: 0)
    stand = at_call(run)
    assert (stand.line, stand.kind, stand.rule) == (2, "device", rule)


@exact
def test_an_index_by_a_mask_may_wait_and_one_by_a_slice_does_not(tmp_path: Path) -> None:
    stands = [
        at_subscript(program(tmp_path, f"def run():\n    return rows[{index}]\n", rows={}, mask=1))
        for index in ("mask", "1:2", "0")
    ]
    assert [stand.kind for stand in stands] == ["device", "host", "host"]


def instruction(run: Callable[[], object], *names: str) -> int:
    """Return where the function's last instruction with one of these names lies."""
    code = getattr(run, "__code__")  # noqa: B009 - a Callable has none for mypy
    return [step.offset for step in dis.get_instructions(code) if step.opname.startswith(names)][-1]


def at_call(run: Callable[[], object]) -> ThreadPosition:
    """Return where a thread stands that is in the function's last call."""
    stand = PositionLookup()([getattr(run, "__code__"), instruction(run, "CALL")])  # noqa: B009
    assert stand is not None
    return stand


def at_subscript(run: Callable[[], object]) -> ThreadPosition:
    """Return where a thread stands that is in the function's subscript."""
    stand = PositionLookup()([getattr(run, "__code__"), instruction(run, "BINARY_SUBSCR", "BINARY_SLICE", "BINARY_OP")])  # noqa: B009
    assert stand is not None
    return stand


@exact
def test_a_function_of_torch_s_that_only_passes_the_call_on_waits_as_the_call(tmp_path: Path) -> None:
    """`Tensor.unique` is written in Python, in torch/_tensor.py."""
    run = program(tmp_path, "def run():\n    return ints.unique()\n")
    unique = sys.modules["torch"].Tensor.unique.__code__
    stand = PositionLookup()([unique, 0, getattr(run, "__code__"), instruction(run, "CALL")])  # noqa: B009
    assert stand is not None
    assert (stand.line, stand.kind, stand.rule) == (2, "device", "unique")
