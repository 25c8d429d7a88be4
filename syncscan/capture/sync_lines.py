"""Record synchronizations as they happen, for a table of their exact source lines.

torch calls back into Python at the beginning of every stream, device and event synchronization, of every blocking copy
(it ends in a stream synchronization) and of every event record and wait. Kineto can't tell the line of a call, a
callback can: it looks at its own stack. The callbacks are on between `begin` and `end` and at no other time.

They are private to torch (`torch/cuda/_gpu_trace.py`, for its CUDA sanitizer). `torch._C._activate_gpu_trace` starts
them and nothing of torch stops them, though on they cost every allocation and event of the process about a microsecond:
a step took 11 to 57 % longer (H200, torch 2.11). What starts them is an exported bool of libc10
(`c10/core/impl/GPUTrace.h`, `haveState`), which is read at every such call: false stops them, true starts them again.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

from syncscan.capture import device
from syncscan.capture.stack_frames import RUNNER, naming, outward
from syncscan.capture.torch_hooks import Function, replaced, unseen
from syncscan.facts.program_frames import ModulePaths, shortened
from syncscan.model.libraries import calls_modules
from syncscan.source.loops import Loops

SYMBOL = "_ZN3c104impl8GPUTrace9haveStateE"
"""`c10::impl::GPUTrace::haveState`, as compilers for Linux and macOS mangle it."""
LIBRARIES = ("libc10.so", "libc10.dylib")

REGISTRIES = {
    "stream": "StreamSynchronizationCallbacks",
    "device": "DeviceSynchronizationCallbacks",
    "event": "EventSynchronizationCallbacks",
    "record": "EventRecordCallbacks",
    "wait": "EventWaitCallbacks",
}
"""Kind of callback → name of the list in torch's module with its functions."""


def switch() -> ctypes.c_bool | None:
    """Return the flag by which torch decides whether to call back; None if this torch has none that can be found."""
    import torch

    folder = Path(str(torch.__file__)).parent / "lib"
    for name in LIBRARIES:
        with contextlib.suppress(OSError, ValueError):
            return ctypes.c_bool.in_dll(ctypes.CDLL(str(folder / name)), SYMBOL)
    return None


def registries(vendor: str) -> dict[str, list[Callable[..., None]]] | None:
    """Return the lists of functions that torch calls for this kind of device, by kind of callback.

    The vendor is `cuda` (ROCm's too) or `xpu`, as torch names its module. None where this torch has no callbacks, or
    can't stop them: then nothing may be started.
    """
    import torch

    try:
        module = importlib.import_module(f"torch.{vendor}._gpu_trace")
        lists = {what: getattr(module, name).callback_list for what, name in REGISTRIES.items()}
        torch._C._activate_gpu_trace  # noqa: B018
    except (ImportError, AttributeError):
        return None
    return lists if switch() is not None else None


def start_callbacks(
    lists: Mapping[str, list[Callable[..., None]]], functions: Mapping[str, Callable[..., None]]
) -> Any:
    """Let torch call these functions; return one after which it calls only earlier callbacks, or none.

    `lists` are those of `registries`, whose keys `functions` has too. A device's synchronization has no argument, a
    stream's or an event's has its address, a record or wait has the event's and the stream's.
    """
    import torch

    on = switch()
    if on is None:
        raise RuntimeError("torch's callbacks couldn't be stopped")
    before = on.value
    for what, function in functions.items():
        lists[what].append(function)
    # The first call of a process stores torch's interpreter, later ones do nothing: the bool alone decides then.
    torch._C._activate_gpu_trace()
    on.value = True

    def stop() -> None:
        on.value = before
        for what, function in functions.items():
            with contextlib.suppress(ValueError):
                lists[what].remove(function)

    return stop


CALLS = (
    ("torch._C", "_cuda_emptyCache"),
    ("torch._C", "_xpu_emptyCache"),
    ("torch._VF", "unique_dim"),
    ("torch.Tensor", "coalesce"),
)
"""Module or class, and name: `empty_cache()`, `torch.unique(x, dim=…)`, `Tensor.coalesce()`."""


def watch_calls(note: Callable[[int, int], None]) -> Callable[[], None]:
    """Call `note(begin, end)` (epoch ns) after each of `CALLS`; return a function that stops it."""

    def timed(original: Function) -> Function:
        def noted(*arguments: object, **keywords: object) -> object:
            begin = time.time_ns()
            try:
                return original(*arguments, **keywords)
            finally:
                note(begin, time.time_ns())

        return noted

    return replaced((path, name, timed) for path, name in CALLS)


Frame = tuple[str, int, str]
"""File, line and function of one frame."""

Sync = tuple[int, int, str, int, Any, Any, "list[Frame] | None"]
"""A synchronization: when it began (epoch ns), native thread, kind, address of the awaited object, torch's captured
traceback, the innermost module around it, and a borrowed stack. The traceback is None where the thread has no Python
frames (autograd engine threads); the last is then the training thread's stack, which waits in `backward()`. A plain
tuple, as creating one must be cheap."""


Call = tuple[int, int, int, Any]
"""A call that may wait without a callback: begin and end (epoch ns), native thread, torch's captured traceback."""


class RecordedWaits:
    """Syncs, event calls and other waiting calls of one recording.

    `trainer` is the native id of the thread that opened it, the one that trains.
    """

    def __init__(self) -> None:
        self.trainer = threading.get_native_id()
        self.syncs: list[Sync] = []
        self.calls: list[Call] = []
        self.events: list[tuple[int, int, str, int, int]] = []
        self.roots: dict[int, Any] = {}
        self._ident = threading.get_ident()

    def trainer_stack(self) -> list[Frame]:
        """Return the current stack of the training thread, innermost first."""
        frames = outward(sys._current_frames().get(self._ident))
        # All of them: the outermost are the program's, and `trimmed` cuts between.
        return [(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name) for frame in frames]


class _NativeThread(threading.local):
    """The calling thread's native id, which is kineto's `tid`; one system call per thread."""

    def __init__(self) -> None:
        self.tid = threading.get_native_id()


_REACH = range(20)
"""Frames that are searched for a module: in a forward it is near, and each frame takes 40 ns."""


class _RecordingState:
    def __init__(self) -> None:
        self.recording: RecordedWaits | None = None
        self.undo, self.thread = ExitStack(), _NativeThread()


_state = _RecordingState()


def exact() -> bool:
    """Return whether this torch calls back at every synchronization, and can be stopped; that takes a device."""
    vendor = device.vendor()
    return vendor is not None and registries(vendor) is not None


def begin() -> None:
    """Open a recording, unless one is open, and start the callbacks; the calling thread counts as the training one."""
    if _state.recording is not None:
        return
    vendor = device.vendor()
    lists = registries(vendor) if vendor is not None else None
    _state.recording = RecordedWaits()
    unseen()
    try:
        _state.undo.callback(watch_calls(on_call()))
        if lists is not None:
            _state.undo.callback(start_callbacks(lists, functions()))
    except BaseException:
        end()
        raise


def end() -> RecordedWaits | None:
    """Stop the callbacks, close the recording and return it; None if none was open."""
    recording, _state.recording = _state.recording, None
    _state.undo.close()
    return recording


def functions() -> dict[str, Callable[..., None]]:
    """Return the functions that torch is to call, by kind of callback (`REGISTRIES`)."""
    syncs = {kind: on_sync(kind) for kind in ("stream", "device", "event")}
    return {**syncs, **{kind: on_event(kind) for kind in ("record", "wait")}}


def on_sync(kind: str) -> Callable[..., None]:
    """Return the callback for one kind of sync ("stream", "device", "event").

    All that it uses is bound here, for it runs at every sync of a program: about 3 µs on an H200's host, more under a
    deep stack (`benchmarks/capture_cost.py`). torch's own gatherer walks the frames in C and keeps (code, instruction),
    which turn into lines after the recording.
    """
    import torch

    gather, module_call = torch._C._profiler.gather_traceback, torch.nn.Module.__call__.__code__
    state, now, frame_at = _state, time.time_ns, sys._getframe

    def callback(handle: int = 0) -> None:
        recording = state.recording
        if recording is None:
            return
        at, tid = now(), state.thread.tid
        try:
            frame: FrameType | None = frame_at(2)
        except ValueError:
            recording.syncs.append((at, tid, kind, handle, None, None, recording.trainer_stack()))
            return
        module = _innermost(frame, module_call)
        if module is not None and id(module) not in recording.roots:
            recording.roots[id(module)] = _outermost(frame, module_call)
        recording.syncs.append((at, tid, kind, handle, gather(True, False, False), module, None))

    return callback


def on_call() -> Callable[[int, int], None]:
    """Return the function that `waits_by_name` calls after a call has ended, with its begin and end in epoch ns."""
    import torch

    gather = torch._C._profiler.gather_traceback
    state = _state

    def note(begin: int, end: int) -> None:
        recording = state.recording
        if recording is not None:
            recording.calls.append((begin, end, state.thread.tid, gather(True, False, False)))

    return note


def on_event(kind: str) -> Callable[[int, int], None]:
    """Return the callback for event records or waits: edges between streams, which a trace doesn't contain."""
    state, now = _state, time.time_ns

    def callback(event: int, stream: int) -> None:
        recording = state.recording
        if recording is not None:
            recording.events.append((now(), state.thread.tid, kind, event, stream))

    return callback


def _innermost(frame: FrameType | None, module_call: CodeType) -> Any:
    """Return the `nn.Module` whose call is nearest around this frame.

    Its frame is asked, not a forward hook: a global hook would make every module call slower, and make dynamo compile
    the model anew, with the hook in it.
    """
    for _ in _REACH:
        if frame is None:
            return None
        if frame.f_code is module_call:
            return frame.f_locals.get("self")
        frame = frame.f_back
    return None


def _outermost(frame: FrameType | None, module_call: CodeType) -> Any:
    """Return the module whose call encloses all other module calls of this stack."""
    calls = [frame for frame in outward(frame) if frame.f_code is module_call]
    return calls[-1].f_locals.get("self") if calls else None


Json = dict[str, Any]


T = TypeVar("T", bound=Hashable)


class Interned(dict[T, int]):
    """Distinct values in order of first use, each with its index."""

    def __missing__(self, value: T) -> int:
        return self.setdefault(value, len(self))


def lines_table(recording: RecordedWaits) -> Json:
    """Return the table of a recording's syncs, all JSON values.

    It has `frames` ([file as `naming` has it, line, function]), `stacks` (frame indices, innermost first), `modules`
    (the outermost module's class and the names below it, `TinyLM/enc/layers/0`), `syncs` (rows as in
    `model.capture.SyncRecord`), `calls` (timed by name: begin, end, tid, stack) and `looped` (indices of frames within
    a network whose line is in a loop of their function).
    """
    frames: Interned[Frame] = Interned()
    looped, loops = set[int](), Loops()
    stacks: Interned[tuple[int, ...]] = Interned()
    modules: Interned[str] = Interned()
    path_of, named = ModulePaths(), naming()

    def number(stack: Iterable[Frame]) -> int:
        listed = list(stack)
        numbers = tuple(frames[named(file), line, function] for file, line, function in listed)
        for index, (file, line, _) in zip(numbers, in_network(listed), strict=False):
            if index not in looped and loops[file].repeats(line):
                looped.add(index)
        return stacks[numbers]

    rows = []
    syncs, timed = recording.syncs, recording.calls
    for (at, tid, kind, handle, _, module, borrowed), stack in zip(syncs, _stacks(syncs), strict=True):
        stack_id = number(stack) if stack else -1
        module_id = modules[path_of(recording.roots.get(id(module), module), module)] if module is not None else -1
        rows.append([at, tid, kind, stack_id, module_id, handle, tid if borrowed is None else recording.trainer])
    calls = [
        [begin, end, tid, number(stack)]
        for (begin, end, tid, _), stack in zip(timed, _resolve([c[-1] for c in timed]), strict=True)
    ]
    return {
        "source": "callbacks",
        "frames": [list(frame) for frame in frames],
        "stacks": [list(stack) for stack in stacks],
        "modules": list(modules),
        "syncs": rows,
        "calls": calls,
        "looped": sorted(looped),
    }


def in_network(stack: Sequence[Frame]) -> Sequence[Frame]:
    """Return the frames of a stack that a module's call encloses, innermost first; none without one."""
    outermost = max((at for at, (file, _, _) in enumerate(stack) if calls_modules(file)), default=0)
    return stack[:outermost]


def trimmed(stack: Iterable[Frame]) -> list[Frame]:
    """Return the program's frames of a stack: without the callback inside and the script runner outside."""
    program_frames: list[Frame] = []
    for frame in stack:
        file, _, function = frame
        if file == RUNNER:
            break
        if not program_frames and (file == __file__ or function == "fire_callbacks"):
            continue
        program_frames.append(frame)
    return shortened(program_frames)


def _stacks(syncs: Sequence[Sync]) -> list[list[Frame]]:
    """Return the trimmed stack of each sync, its own or the borrowed one."""
    resolved = iter(_resolve([traceback for *_, traceback, _, borrowed in syncs if borrowed is None]))
    return [trimmed(borrowed) if borrowed is not None else next(resolved) for *_, borrowed in syncs]


def _resolve(captured: list[Any]) -> list[list[Frame]]:
    """Return the trimmed stacks of captured tracebacks, which torch symbolizes all at once."""
    import torch

    resolve = torch._C._profiler.symbolize_tracebacks
    stacks = resolve(captured) if captured else []
    return [trimmed((f["filename"], f["line"], f["name"]) for f in stack) for stack in stacks]
