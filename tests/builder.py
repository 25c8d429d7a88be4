"""Builds a trace in a few readable lines: in comes the story of a step, out a trace as torch.profiler would write it.

    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("mask", start + 10, start + 400):
            t.launch("gemm", at=start + 12, lasts=100)
            t.sync("aten::nonzero", at=start + 20, wait=300)
    trace = t.trace()

All times are absolute and in µs. Ranges (`step`, `scope`, `op`, `frame`, `call`) can be used as context managers: then
what is added inside must lie inside, so that a slip of the pen doesn't pass as a broken trace. Device work takes its
place on its stream as on a real device: after its launch, and after the work before it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncscan.model.trace import Trace
from tests.load import reference

MAIN = 100
"""Pid of the process, and tid of its main thread."""
LAUNCH = 1
"""How long a call that doesn't wait takes, µs."""

_HIP = {
    "cudaLaunchKernel": "hipLaunchKernel",
    "cudaMemcpyAsync": "hipMemcpyAsync",
    "cudaStreamSynchronize": "hipStreamSynchronize",
    "cudaDeviceSynchronize": "hipDeviceSynchronize",
    "cudaEventSynchronize": "hipEventSynchronize",
    "cudaEventRecord": "hipEventRecord",
    "cudaStreamWaitEvent": "hipStreamWaitEvent",
}
_HIP_KIND = {"HtoD": "1", "DtoH": "2", "DtoD": "3"}


class TraceBuilder:
    """A trace that is told line by line.

    Args:
        vendor: `cuda`, `rocm` (HIP names, one blocking `hipMemcpyWithStream` a copy) or `none`.
        base_ns: epoch ns that a slice's time is counted from.
        metadata: further top-level keys, e.g. `with_stack=1`.
    """

    def __init__(self, vendor: str = "cuda", base_ns: int = 1_790_000_000_000_000_000, **metadata: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.metadata: dict[str, Any] = {"schemaVersion": 1, **metadata}
        self.vendor, self.base_ns = vendor, base_ns
        self.tid = MAIN
        self._within: list[tuple[str, float, float]] = []
        self._free: dict[tuple[int, int], float] = {}
        self._correlation = 1000
        self._external = 0
        self._number = 2
        self._named: set[int] = set()
        if vendor != "none":
            self.metadata["deviceProperties"] = [{"id": 0, "name": "Test Device"}]
            self.metadata["hip_runtime_version" if vendor == "rocm" else "cuda_runtime_version"] = 13000

    # ranges on the host

    def step(self, start: float, end: float, number: int | None = None) -> _Range:
        """A `ProfilerStep#N`; numbers count on from 2 unless given."""
        self._number = self._number if number is None else number
        self._number += 1
        return self._host("user_annotation", f"ProfilerStep#{self._number - 1}", start, end)

    def steps(self, count: int, lasts: float, start: float = 0) -> Iterator[float]:
        """Consecutive steps of one length, each yielded as its start while it is open."""
        for k in range(count):
            begin = start + k * lasts
            with self.step(begin, begin + lasts):
                yield begin

    def scope(self, name: str, start: float, end: float) -> _Range:
        """A `record_function` scope, or any other annotation."""
        return self._host("user_annotation", name, start, end)

    def op(self, name: str, start: float, end: float, sequence: int | None = None, fwd_thread: int = 0) -> _Range:
        """An op such as `aten::nonzero`; `sequence` makes it one that autograd follows."""
        self._external += 1
        args: dict[str, Any] = {"External id": self._external}
        if sequence is not None:
            args |= {"Sequence number": sequence, "Fwd thread id": fwd_thread}
        return self._host("cpu_op", name, start, end, args)

    def backward(self, name: str, start: float, end: float, sequence: int | None = None) -> _Range:
        """A backward op such as `IndexBackward0` inside its `autograd::engine` range, 1 µs wider on both sides."""
        self.op(f"autograd::engine::evaluate_function: {name}", start - 1, end + 1, sequence, fwd_thread=1)
        return self.op(name, start, end, sequence, fwd_thread=1)

    def frame(self, name: str, start: float, end: float) -> _Range:
        """A Python frame: `train.py(12): loss`, `<built-in method item of Tensor …>`, `nn.Module: Net_0`."""
        return self._host("python_function", name, start, end)

    @contextmanager
    def thread(self, name: str, tid: int = MAIN + 1) -> Iterator[None]:
        """Add everything inside on this thread, e.g. `pt_autograd_0`."""
        before, within = self.tid, self._within
        self.tid, self._within = tid, []
        if tid not in self._named:
            self._named.add(tid)
            self._label("thread_name", MAIN, tid, f"thread {tid} ({name})")
        try:
            yield
        finally:
            self.tid, self._within = before, within

    # calls and device work

    def call(self, name: str, start: float, end: float, **args: Any) -> _Range:
        """A runtime call without device work of its own, under the vendor's name."""
        self._correlation += 1
        api = _HIP.get(name, name) if self.vendor == "rocm" else name
        return self._host("cuda_runtime", api, start, end, {"correlation": self._correlation, **args})

    def launch(
        self,
        kernel: str = "kernel",
        *,
        at: float,
        lasts: float,
        stream: int = 7,
        device: int = 0,
        begins: float = 0,
        blocks: int = 0,
    ) -> float:
        """A kernel, which begins then at the earliest, and the call that launches it; returns when it ends."""
        self.call("cudaLaunchKernel", at, at + LAUNCH)
        grid = {"grid": [blocks, 1, 1]} if blocks else {}
        return self._work("kernel", kernel, max(at + LAUNCH, begins), lasts, stream, device, **grid)

    def collective(
        self,
        kind: str = "AllReduce",
        *,
        at: float,
        until: float,
        begins: float = 0,
        group: str = "0",
        ranks: Sequence[int] = (0, 1),
        stream: int = 7,
        device: int = 0,
        **args: Any,
    ) -> float:
        """A collective's kernel: it begins when its own rank comes, and ends for all at the same time; returns that."""
        self.call("cudaLaunchKernel", at, at + LAUNCH)
        begin = max(at + LAUNCH, begins, self.free_at(stream, device))
        metadata = {"Process Group Name": group, "Process Group Ranks": json.dumps(list(ranks)), **args}
        name = f"ncclDevKernel_{kind}_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        return self._work("kernel", name, begin, until - begin, stream, device, **metadata)

    def copy(
        self,
        name: str,
        *,
        at: float,
        lasts: float = 1,
        stream: int = 7,
        device: int = 0,
        blocks: bool = False,
        size: int = 8,
    ) -> float:
        """A copy such as `Memcpy HtoD (Pageable -> Device)` and its call; that lasts as long as the copy if it blocks.

        Returns:
            When the copy ends on its stream.
        """
        done = max(at + LAUNCH, self.free_at(stream, device)) + lasts
        api, args = self._copy_call(name, blocks)
        self.call(api, at, done + LAUNCH if blocks else at + LAUNCH, **args)
        return self._work("gpu_memcpy", name, at + LAUNCH, lasts, stream, device, bytes=size)

    def sync(
        self,
        op: str,
        *,
        at: float,
        wait: float | None = None,
        stream: int = 7,
        device: int = 0,
        copy: str = "Memcpy DtoH (Device -> Pinned)",
        size: int = 8,
    ) -> float:
        """An op that reads something back: it launches a kernel and a copy, and waits for them.

        Args:
            op: e.g. `aten::nonzero`, or a chain of ops, `aten::item > aten::_local_scalar_dense`.
            at: when the op begins; the host waits from `at + 4` on.
            wait: how long the host is blocked, by default as long as the work on the stream demands. The op's kernel
                fills what the work before leaves of it.
            stream: where the kernel and the copy run.
            device: whose stream.
            copy: the copy's name.
            size: the copy's bytes.

        Returns:
            When the op ends: 1 µs after the synchronize, which returns 1 µs after the device is done.
        """
        ready = max(at + 2, self.free_at(stream, device))
        done = ready + 2 if wait is None else at + 4 + wait
        if done < ready + 1:
            raise ValueError(f"stream {stream} works until {ready}: a sync at {at} can't wait only {wait}")
        end = max(done, at + 4) + 1
        *outer, op = op.split(" > ")
        for name in outer:
            self.op(name, at, end + 1)
        with self.op(op, at, end + 1):
            if done - 1 > ready:
                self.launch(f"{op} kernel", at=at + 1, lasts=done - 1 - ready, stream=stream, device=device)
            if self.vendor == "rocm":
                name = copy.replace("Pinned", "Host")
                self.copy(name, at=at + 3, stream=stream, device=device, blocks=True, size=size)
            else:
                self.copy(copy, at=at + 2, stream=stream, device=device, size=size)
                self.call("cudaStreamSynchronize", at + 4, end)
        return end + 1

    def synchronize(self, *, at: float, api: str = "cudaDeviceSynchronize", stream: int | None = None) -> float:
        """An explicit synchronize without an op: it returns 1 µs after the device, or one stream, is done."""
        free = [t for (_, s), t in self._free.items() if stream in (None, s)]
        end = max([at, *free]) + 1
        self.call(api, at, end)
        return end

    def free_at(self, stream: int = 7, device: int = 0) -> float:
        """When this stream has done all that was given to it, µs."""
        return self._free.get((device, stream), float("-inf"))

    # anything else

    def arrow(self, start: float, end: float, to_tid: int = MAIN + 1) -> None:
        """A forward-to-backward arrow from this thread."""
        self._external += 1
        flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": self._external, "pid": MAIN}
        self.events.append({"ph": "s", "tid": self.tid, "ts": start, **flow})
        self.events.append({"ph": "f", "tid": to_tid, "ts": end, "bp": "e", **flow})

    def exact(self, at: float, *frames: tuple[str, int, str], module: str = "") -> None:
        """Store a stream synchronize as capture records it: the stack, innermost (file, line, function) first.

        `module` is the path of the module around it, from the outermost module's class on: `Net/head/0`.
        """
        lines = self.metadata.setdefault("syncscan", {}).setdefault("lines", _lines_table())
        first = len(lines["frames"])
        lines["frames"] += [list(f) for f in frames]
        lines["stacks"].append(list(range(first, first + len(frames))))
        lines["modules"] += [module] if module else []
        place = (len(lines["stacks"]) - 1, len(lines["modules"]) - 1 if module else -1)
        lines["syncs"].append([self.base_ns + round(at * 1000), self.tid, "stream", *place, 0, self.tid])

    def event(self, **fields: Any) -> None:
        """Any event, as it stands."""
        self.events.append(fields)

    # the finished trace

    def dict(self) -> Mapping[str, Any]:
        """The trace as `json.load` would give it."""
        return {**self.metadata, "baseTimeNanoseconds": self.base_ns, "traceEvents": self.events}

    def json(self) -> bytes:
        """The trace's file, uncompressed."""
        return json.dumps(self.dict()).encode()

    def trace(self) -> Trace:
        """The trace as a stage gets it."""
        return reference.parse(self.json(), "built.pt.trace.json")

    def write(self, path: str | Path) -> Path:
        """Write the file, gzipped if its name ends in `.gz`; returns its path."""
        path = Path(path)
        path.write_bytes(gzip.compress(self.json(), mtime=0) if path.suffix == ".gz" else self.json())
        return path

    def _host(self, cat: str, name: str, start: float, end: float, args: Mapping[str, Any] | None = None) -> _Range:
        if end < start:
            raise ValueError(f"{name} ends at {end} before it begins at {start}")
        if self._within and not (self._within[-1][1] <= start and end <= self._within[-1][2]):
            raise ValueError(f"{name} ({start} to {end}) lies outside {self._within[-1]}")
        self._slice(cat, name, MAIN, self.tid, start, end - start, args or {})
        return _Range(self._within, (name, start, end))

    def _work(self, cat: str, name: str, ready: float, lasts: float, stream: int, device: int, **args: Any) -> float:
        start = max(ready, self.free_at(stream, device))
        self._free[device, stream] = start + lasts
        ids = {"device": device, "stream": stream, "correlation": self._correlation}
        self._slice(cat, name, device, stream, start, lasts, {**ids, **args})
        return start + lasts

    def _slice(self, cat: str, name: str, pid: int, tid: int, ts: float, dur: float, args: Mapping[str, Any]) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": dict(args)}
        self.events.append(event)

    def _label(self, kind: str, pid: int, tid: int, text: str) -> None:
        self.events.append({"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": {"name": text}})

    def _copy_call(self, name: str, blocks: bool) -> tuple[str, Mapping[str, Any]]:
        if self.vendor != "rocm":
            return "cudaMemcpyAsync", {}
        kind = _HIP_KIND[name.split()[1]]
        return ("hipMemcpyWithStream" if blocks else "hipMemcpyAsync"), {"kind": kind, "bytes": 8}


class _Range:
    """A range that has been added; as a context manager it holds what is added inside to its bounds."""

    def __init__(self, within: list[tuple[str, float, float]], bounds: tuple[str, float, float]) -> None:
        self._within, self._bounds = within, bounds

    def __enter__(self) -> None:
        self._within.append(self._bounds)

    def __exit__(self, *raised: object) -> None:
        self._within.pop()


def _lines_table() -> dict[str, Any]:
    columns = ["epoch_ns", "tid", "kind", "stack", "module", "handle", "stack_tid"]
    return {"source": "callbacks", "columns": columns, "frames": [], "stacks": [], "modules": [], "syncs": []}


def names(trace: Trace, rows: Sequence[int]) -> list[str]:
    """The names of these rows, for assertions that read well."""
    return [trace.name(r) for r in rows]
