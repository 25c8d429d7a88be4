"""The sync callbacks record calls, here made by hand as torch makes them on a device."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from syncscan.capture import device, main_script, sync_lines
from syncscan.capture.sync_lines import lines_table
from syncscan.facts import program_frames
from syncscan.model.capture import SyncRecord

torch = pytest.importorskip("torch")


class Registry:
    """Stands in for `torch.cuda._gpu_trace`: holds callbacks, and fires them as torch's does, one frame in between."""

    def __init__(self) -> None:
        self.callbacks = sync_lines.functions()

    def fire_callbacks(self, kind: str, *arguments: int) -> None:
        self.callbacks[kind](*arguments)


@pytest.fixture
def registry() -> Iterator[Registry]:
    yield Registry()
    sync_lines.end()


def recorded(registry: Registry, act: Callable[[], None]) -> dict[str, Any]:
    sync_lines.begin()
    act()
    recording = sync_lines.end()
    assert recording is not None
    return lines_table(recording)


def stacks(table: dict[str, Any]) -> list[list[list[Any]]]:
    return [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["syncs"]]


def wait(registry: Registry, handle: int = 7) -> None:
    registry.fire_callbacks("stream", handle)


def test_a_sync_keeps_the_line_of_the_call_and_of_its_callers(registry: Registry) -> None:
    """Innermost frame first, each with the line that it was executing, without the callback's own frames."""

    def caller() -> None:
        wait(registry)

    (stack,) = stacks(recorded(registry, caller))
    assert stack[0] == [__file__, wait.__code__.co_firstlineno + 1, "wait"]
    assert stack[1] == [__file__, caller.__code__.co_firstlineno + 1, "caller"]


def test_a_frame_of_a_network_says_whether_its_line_is_in_a_loop(registry: Registry) -> None:
    """The line of `forward` that calls is; the one that waits isn't, and a loop around the network doesn't count."""

    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self) -> None:
            for _ in range(2):
                wait(registry)

    net = Net()

    def steps() -> None:
        for _ in range(2):
            net()

    table = recorded(registry, steps)
    assert [table["frames"][number][1:] for number in table["looped"]] == [
        [Net.forward.__code__.co_firstlineno + 2, "forward"]
    ]


def test_rows_hold_time_thread_kind_and_handle(registry: Registry) -> None:
    """The time is the epoch's, the thread kineto's native one."""
    before = time.time_ns()
    (row,) = recorded(registry, lambda: wait(registry))["syncs"]
    of = dict(zip(SyncRecord.__struct_fields__, row, strict=True))
    assert before <= of["epoch_ns"] <= time.time_ns()
    assert of["tid"] == of["stack_tid"] == threading.get_native_id()
    assert (of["kind"], of["handle"], of["module"]) == ("stream", 7, -1)


def test_all_kinds_are_recorded(registry: Registry) -> None:
    """A device synchronize comes without a handle."""

    def act() -> None:
        registry.fire_callbacks("device")
        registry.fire_callbacks("event", 5)

    assert [(row[2], row[5]) for row in recorded(registry, act)["syncs"]] == [("device", 0), ("event", 5)]


def test_nothing_is_recorded_outside_a_recording(registry: Registry) -> None:
    """A callback that fires late does nothing."""
    wait(registry)
    assert recorded(registry, lambda: None)["syncs"] == []


def test_the_same_place_is_stored_once(registry: Registry) -> None:
    """A thousand syncs of one line share a stack."""

    def act() -> None:
        for _ in range(1000):
            wait(registry)

    table = recorded(registry, act)
    assert (len(table["syncs"]), len(table["stacks"])) == (1000, 1)


def test_the_innermost_module_is_named_by_its_path(registry: Registry) -> None:
    """Outermost class first, then the names below it."""

    class Waits(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            wait(registry)
            return x

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Identity(), Waits())

        def forward(self, x: Any) -> Any:
            return self.body(x)

    table = recorded(registry, lambda: Model()(1))
    assert [table["modules"][row[4]] for row in table["syncs"]] == ["Model/body/1"]


def test_a_module_that_its_caller_does_not_hold_is_named_by_its_class(registry: Registry) -> None:
    """A module made on the fly stands in no `named_modules`."""

    class Waits(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            wait(registry)
            return x

    class Model(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return Waits()(x)

    table = recorded(registry, lambda: Model()(1))
    assert table["modules"] == ["Waits"]


def test_a_thread_without_frames_borrows_the_training_thread_s_stack(registry: Registry) -> None:
    """The callback's frame has no caller there, as on the autograd engine's threads."""
    callback = registry.callbacks["stream"]
    finished = threading.Event()

    def bare() -> None:
        import _thread

        _thread.start_new_thread(callback, (7,))
        while len(_recording().syncs) < 1:
            time.sleep(0.001)
        finished.set()

    table = recorded(registry, bare)
    (row,) = table["syncs"]
    assert row[6] == threading.get_native_id() != row[1]
    assert [table["frames"][i][2] for i in table["stacks"][row[3]]][:1] == ["bare"]


def _recording() -> sync_lines.RecordedWaits:
    recording = sync_lines._state.recording
    assert recording is not None
    return recording


def test_event_calls_are_recorded_with_event_and_stream(registry: Registry) -> None:
    """Records and waits are the edges between streams."""
    sync_lines.begin()
    registry.fire_callbacks("record", 1, 2)
    registry.fire_callbacks("wait", 1, 3)
    recording = sync_lines.end()
    assert recording is not None
    assert [event[2:] for event in recording.events] == [("record", 1, 2), ("wait", 1, 3)]


def test_without_a_device_nothing_is_exact() -> None:
    """On a CPU no callback would ever be called."""
    if torch.cuda.is_available():
        pytest.skip("has a GPU")
    assert not sync_lines.exact()


def test_with_a_device_lines_are_exact_where_torch_calls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """And can be told to stop."""
    monkeypatch.setattr(device, "vendor", lambda: "cuda")
    assert sync_lines.exact()
    monkeypatch.setattr(sync_lines, "switch", lambda: None)
    assert not sync_lines.exact()


def test_every_kind_of_callback_has_a_function() -> None:
    """Torch calls nobody for a kind without a function."""
    assert set(sync_lines.functions()) == set(sync_lines.REGISTRIES)


@pytest.mark.bench
def test_a_borrowed_stack_reaches_the_program_however_deep() -> None:
    """The training thread may stand far below the program's own frames; what is cut is cut once the runner's are."""
    recording = sync_lines.RecordedWaits()

    def nested(depth: int) -> list[sync_lines.Frame]:
        return nested(depth - 1) if depth else recording.trainer_stack()

    stack = nested(200)
    assert [function for _, _, function in stack].count("nested") == 201
    assert (__file__, "test_a_borrowed_stack_reaches_the_program_however_deep") in [(f, name) for f, _, name in stack]


def lines_run(act: Callable[[], None]) -> int:
    """Return how many lines of Python `act` executes, those of what it calls included."""
    events: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        events[event] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return events["line"]


def test_a_callback_runs_equally_many_lines_under_a_deep_stack(registry: Registry) -> None:
    """A test runner has some fifty frames: the stack is gathered by one call into C, whatever its depth."""

    def nested(depth: int) -> None:
        if depth:
            nested(depth - 1)
        else:
            counts.append(lines_run(lambda: wait(registry)))

    def both() -> None:
        nested(0)
        nested(200)

    counts: list[int] = []
    shallow, deep = stacks(recorded(registry, both))
    assert len(deep) > len(shallow)
    assert 0 < counts[0] == counts[1]


@pytest.mark.bench
def test_a_callback_takes_less_than_6_us_under_a_deep_stack(registry: Registry) -> None:
    """A walk in Python of a test runner's some fifty frames would take 8 µs."""

    def spent() -> float:
        began = time.perf_counter()
        for _ in range(1000):
            wait(registry)
        return (time.perf_counter() - began) * 1e3

    idle = min(spent() for _ in range(5))
    times = []
    for _ in range(9):
        sync_lines.begin()
        times.append(spent())
        sync_lines.end()
    assert min(times) - idle < 6.0


def test_the_runner_and_everything_around_it_is_cut() -> None:
    """A script run by `syncscan profile` shows the frames that it would have under `python`."""
    stack = [
        ("train.py", 5, "loss"),
        ("train.py", 9, "<module>"),
        ("<frozen runpy>", 88, "_run_code"),
        (main_script.__file__, 80, "_run_path"),
        ("click/core.py", 1, "main"),
    ]
    assert sync_lines.trimmed(stack) == stack[:2]


def test_the_callback_s_own_frames_are_cut() -> None:
    """Torch calls through `fire_callbacks`."""
    ours = str(Path(main_script.__file__).with_name("sync_lines.py"))
    stack = [(ours, 1, "callback"), ("torch/_utils.py", 1082, "fire_callbacks"), ("train.py", 5, "loss")]
    assert sync_lines.trimmed(stack) == stack[2:]


def test_a_runpy_of_the_program_s_own_stays() -> None:
    """Only what lies next to the runner goes."""
    stack = [("a.py", 1, "f"), ("<frozen runpy>", 88, "_run_code"), ("b.py", 2, "main")]
    assert sync_lines.trimmed(stack) == stack


def test_a_deep_stack_keeps_the_program_s_frames() -> None:
    """Below a library that nests deeply the program's line would be lost, were only the innermost frames kept."""
    deep = [("pyro/poutine/messenger.py", 12, "_context_wrap")] * 200
    stack = [("pyro/util.py", 135, "warn_if_nan"), *deep, ("train.py", 9, "<module>")]
    stored = sync_lines.trimmed(stack)
    assert stored[0] == stack[0]
    assert stored[-1] == stack[-1]
    assert len(stored) == program_frames.INNERMOST + program_frames.OUTERMOST
