"""Make replacements for classes of `torch.cuda` that only a device could provide."""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
import time
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

import torch

from syncscan.dryrun.device_kinds import simulated
from syncscan.dryrun.recorder import DryRunSession
from syncscan.dryrun.wait_table import synchronize


def legacy_types() -> dict[str, Any]:
    """Replace `torch.cuda.FloatTensor` and the like, which make tensors of a type on the device."""
    kinds = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64"}
    kinds |= {"Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool"}
    return {f"{kind}Tensor": _legacy_type(f"{kind}Tensor", getattr(torch, dtype)) for kind, dtype in kinds.items()}


def _legacy_type(name: str, dtype: Any) -> Any:
    def made(cls: Any, *data: Any) -> Any:
        sized = bool(data) and all(isinstance(value, int) for value in data)
        if sized or not data:
            return torch.empty(data or (0,), dtype=dtype, device="cuda")
        return torch.tensor(data[0], dtype=dtype, device="cuda")

    return type(name, (), {"__new__": made, "__module__": "torch.cuda"})


def generator() -> Any:
    """Return a replacement for `torch.Generator` on the CPU that reports the requested device."""

    class Generator(torch._C.Generator):  # type: ignore[misc]
        """A random number generator that reports the requested device."""

        def __new__(cls, device: Any = "cpu") -> Any:
            generator = super().__new__(cls, "cpu")
            generator._said = torch.device(device)
            return generator

        @property
        def device(self) -> Any:
            return self._said

    return Generator


def device_context() -> Any:

    class device:
        """`with torch.cuda.device(0)`, and what `torch.cuda.device` is asked elsewhere."""

        def __init__(self, device: Any = None) -> None:
            self.idx, self.prev_idx = 0, 0

        def __enter__(self) -> None:
            """Do nothing: there is one device."""

        def __exit__(self, *raised: object) -> None:
            """Do nothing: nothing was changed."""

    return device


def stream_and_event(session: DryRunSession) -> tuple[Any, Any]:
    event = _event_type(session)
    return _stream_type(session, event), event


def _event_type(session: DryRunSession) -> Any:
    order = session.order

    class Event:
        """A mark on a stream that the host can wait for."""

        def __init__(self, *args: Any, enable_timing: bool = False, **options: Any) -> None:
            self.recorded: float | None = None
            self.device, self.cuda_event = simulated().device, 0
            self.mark: dict[int, int] = {}

        def record(self, stream: Any = None) -> None:
            self.recorded = time.perf_counter()
            self.mark = order.mark(_number(stream))

        def wait(self, stream: Any = None) -> None:
            """Have a stream wait, which doesn't block the host."""
            order.stream_waits(self.mark, _number(stream))

        def query(self) -> bool:
            """Return True: it was reached, so the host knows that the work before it is done, if it looks."""
            if not is_dropped(sys._getframe(1)):
                order.host_waits(self.mark)
            return True

        def synchronize(self) -> None:
            session.recording.call()
            order.host_waits(self.mark)
            session.record(synchronize(call="cudaEventSynchronize"))

        def elapsed_time(self, other: Any) -> float:
            """Return the milliseconds between two records, by the CPU's clock."""
            session.recording.op("cudaEventElapsedTime")
            return ((other.recorded or 0.0) - (self.recorded or 0.0)) * 1e3

        def ipc_handle(self) -> bytes:
            """Return nothing: no other process can see it."""
            return b""

    return Event


def _stream_type(session: DryRunSession, event_type: Any) -> Any:
    order = session.order

    class Stream:
        """A queue of work in order."""

        def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
            self.device, self.priority = simulated().device, priority
            self.cuda_stream = self.stream_id = id(self)
            self.device_index, self.device_type = 0, 1
            self.number = order.new_stream()

        def synchronize(self) -> None:
            session.recording.call()
            order.host_waits(order.mark(self.number))
            session.record(synchronize())

        def query(self) -> bool:
            """Return True: all work is done, and the host knows it, if it looks."""
            if not is_dropped(sys._getframe(1)):
                order.host_waits(order.mark(self.number))
            return True

        def is_capturing(self) -> bool:
            return False

        def wait_stream(self, stream: Any) -> None:
            """Have it wait for another stream, which doesn't block the host."""
            order.stream_waits(order.mark(_number(stream)), self.number)

        def wait_event(self, event: Any) -> None:
            """Have it wait for an event, which doesn't block the host."""
            order.stream_waits(getattr(event, "mark", {}), self.number)

        def record_event(self, event: Any = None) -> Any:
            event = event_type() if event is None else event
            event.record(self)
            return event

        def __enter__(self) -> Any:
            self.before = simulated().module.current_stream()
            simulated().module.set_stream(self)
            return self

        def __exit__(self, *raised: object) -> None:
            """Make the stream that was current before current again."""
            simulated().module.set_stream(self.before)

    return Stream


def is_dropped(caller: FrameType) -> bool:
    """Return whether a frame drops what the call returns that it is in now, as a statement does."""
    return _is_dropped(caller.f_code, caller.f_lasti)


@functools.lru_cache(maxsize=1024)
def _is_dropped(code: CodeType, at: int) -> bool:
    following = (instruction.opname for instruction in dis.get_instructions(code) if instruction.offset > at)
    return next(following, "") == "POP_TOP"


def _number(stream: Any) -> int | None:
    """Return the number of a stream in the order of the run; None of the current one."""
    return getattr(stream, "number", None)


def graph(session: DryRunSession) -> Any:
    """Return a replacement for `torch.cuda.CUDAGraph`."""

    class CUDAGraph:
        """A graph that is captured by running it, and whose replays run nothing."""

        def __init__(self, *args: Any, **options: Any) -> None:
            self.pooled = (0, 0)
            self.memories: Any = ()

        def pool(self) -> Any:
            return self.pooled

        def replay(self) -> None:
            """Skip the replay, since the captured work isn't known."""
            session.seen += 1
            session.not_understood("torch.cuda.CUDAGraph.replay")
            session.order.replay(self.memories)

        def reset(self) -> None:
            """Forget the captured work."""

        def capture_begin(self, *args: Any, **options: Any) -> None:
            session.order.begin_capture()

        def capture_end(self) -> None:
            self.memories = session.order.end_capture()

    return CUDAGraph


def capture(session: DryRunSession) -> Any:
    """Return a replacement for `torch.cuda.graph`: it waits as a capture does, and runs the block."""

    @contextlib.contextmanager
    def graph(cuda_graph: Any = None, *args: Any, **options: Any) -> Iterator[None]:
        session.recording.call()
        session.wait(synchronize(call="cudaDeviceSynchronize"))
        session.order.begin_capture()
        try:
            yield
        finally:
            memories = session.order.end_capture()
            if cuda_graph is not None:
                cuda_graph.memories = memories

    return graph
