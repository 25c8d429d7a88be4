"""The obvious reader: a whole trace through `json.loads` into columns; slow, and the oracle of the fast one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from syncscan.load.categories import CATEGORIES, PYTHON
from syncscan.load.link import link
from syncscan.model.trace import NONE, Category, Flows, Frames, Slices, Trace, TraceInfo, Track, Vendor

_SLICE_TYPES: dict[str, Any] = {
    "category": np.int8, "name": np.int32, "track": np.int32, "ts": np.int64, "dur": np.int64, "correlation": np.int64,
    "external": np.int64, "sequence": np.int64, "fwd_thread": np.int32, "device": np.int32, "stream": np.int32,
    "bytes": np.int64, "copy_kind": np.int8, "awaits": np.int64, "parent": np.int32,
}  # fmt: skip


def parse(text: bytes, path: str = "<bytes>") -> Trace:
    """Read a valid, uncompressed trace.

    Args:
        text: the JSON of the trace, an object with `traceEvents` or a bare list.
        path: named in the result's `info`.

    Raises:
        ValueError: the text isn't JSON.
    """
    top = json.loads(text)
    metadata = {} if isinstance(top, list) else {k: v for k, v in top.items() if k != "traceEvents"}
    events = top if isinstance(top, list) else top.get("traceEvents", [])
    return _Reader().read(events, metadata, path, len(text))


class _Interned(dict[Any, int]):
    def __missing__(self, key: Any) -> int:
        self[key] = len(self)
        return self[key]


class _Reader:
    def __init__(self) -> None:
        self.strings = _Interned()
        self.tracks = _Interned()
        self.labels: dict[tuple[str, str], str] = {}
        self.slices: list[tuple[Any, ...]] = []
        self.frames: list[tuple[int, int, int, int]] = []
        self.flow_starts: dict[Any, tuple[int, int]] = {}
        self.flow_ends: list[tuple[Any, int, int]] = []

    def read(self, events: Iterable[Any], metadata: Mapping[str, Any], path: str, size: int) -> Trace:
        count = 0
        for event in events:
            count += 1
            if isinstance(event, dict):
                self._event(event)
        strings = tuple(self.strings)
        return link(
            trace_info(metadata, path, size, count, strings),
            strings,
            tuple(Track(p, t, self.labels.get((p, ""), ""), self.labels.get((p, t), "")) for p, t in self.tracks),
            Slices(**{n: np.array([s[i] for s in self.slices], t) for i, (n, t) in enumerate(_SLICE_TYPES.items())}),
            Frames(*[np.array([f[i] for f in self.frames], t) for i, t in enumerate((np.int32, np.int32, np.int64, np.int64))]),
            self._flows(),
        )

    def _event(self, e: dict[str, Any]) -> None:
        phase, cat = e.get("ph"), e.get("cat")
        if phase == "M" and e.get("name") in ("process_name", "thread_name"):
            tid = "" if e["name"] == "process_name" else str(e.get("tid", ""))
            self.labels.setdefault((str(e.get("pid", "")), tid), str((e.get("args") or {}).get("name", "")).strip())
        elif phase == "X" and cat == PYTHON:
            self.frames.append((self.strings[str(e.get("name", ""))], self._track(e), _ns(e["ts"]), _ns(e.get("dur", 0))))
        elif phase == "X" and cat in CATEGORIES:
            self._slice(e, CATEGORIES[cat])
        elif phase in ("s", "f") and cat in ("fwdbwd", "forward_backward"):
            place = (self._track(e), _ns(e["ts"]))
            if phase == "s":
                self.flow_starts[e.get("id")] = place
            else:
                self.flow_ends.append((e.get("id"), *place))

    def _slice(self, e: dict[str, Any], category: Category) -> None:
        args = e.get("args") or {}
        external = args.get("External id", args.get("external id"))
        self.slices.append((
            category, self.strings[str(e.get("name", ""))], self._track(e), _ns(e["ts"]), _ns(e.get("dur", 0)),
            _id(args.get("correlation")), _id(external), _id(args.get("Sequence number")), _id(args.get("Fwd thread id")),
            _id(args.get("device")), _id(args.get("stream")), _id(args.get("bytes")), _id(args.get("kind")),
            _id(args.get("wait_on_cuda_event_record_corr_id")), NONE,
        ))  # fmt: skip

    def _track(self, e: dict[str, Any]) -> int:
        return self.tracks[(str(e.get("pid", "")), str(e.get("tid", "")))]

    def _flows(self) -> Flows:
        pairs = [(*self.flow_starts[i], track, ts) for i, track, ts in self.flow_ends if i in self.flow_starts]
        types = (np.int32, np.int64, np.int32, np.int64)
        return Flows(*[np.array([p[i] for p in pairs], t) for i, t in enumerate(types)])


def _ns(microseconds: Any) -> int:
    return round(float(microseconds) * 1000)


def _id(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return NONE


def trace_info(metadata: Mapping[str, Any], path: str, size: int, events: int, strings: tuple[str, ...]) -> TraceInfo:
    """What the top-level keys and the names of a trace say about it."""
    distributed = metadata.get("distributedInfo") or {}
    return TraceInfo(
        path=path,
        size_bytes=size,
        events=events,
        vendor=_vendor(metadata, strings),
        devices=tuple(str(d.get("name", "")) for d in metadata.get("deviceProperties") or ()),
        rank=distributed.get("rank"),
        world_size=distributed.get("world_size"),
        base_ns=int(metadata.get("baseTimeNanoseconds") or 0),
        with_stack=bool(metadata.get("with_stack")),
        record_shapes=bool(metadata.get("record_shapes")),
        metadata=metadata,
    )


def _vendor(metadata: Mapping[str, Any], strings: tuple[str, ...]) -> Vendor:
    if "hip_runtime_version" in metadata or any(s.startswith("hip") for s in strings):
        return Vendor.ROCM
    if "cuda_runtime_version" in metadata or any(s.startswith("cuda") for s in strings):
        return Vendor.CUDA
    if any(s.startswith(("zeCommandList", "urEnqueue")) for s in strings):
        return Vendor.XPU
    return Vendor.NONE
