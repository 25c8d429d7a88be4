"""Derive a trace's vendor, devices, rank and options from its top-level keys and names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from syncscan.load.columns import Unlinked
from syncscan.load.conversions import id_of, text_of
from syncscan.load.fields import vendor_of_category
from syncscan.model.capture import capture_table
from syncscan.model.trace import CALLS, DEVICE, NONE, Category, TraceInfo, Vendor, of_categories

# ROCm's calls are in the category cuda_runtime too (libkineto's RocprofActivity.h), so names decide.
_CALLS = {
    Vendor.ROCM: re.compile(r"hip[A-Z]|hsa_|roc"),
    Vendor.XPU: re.compile(r"ze[A-Z]|ur[A-Z]|pi[A-Z]|GPU_BARRIER|HOST_(FENCE|EVENT|COMMAND)"),
    Vendor.MTIA: re.compile(r"mtia", re.IGNORECASE),
    Vendor.CUDA: re.compile(r"cuda[A-Z]|cu[A-Z]"),
}
_DROPPED = re.compile(r"Dropped (\d{1,18}) activity records")
"""kineto's own warning when CUPTI ran out of buffers (CuptiActivityApi.cpp); its log is part of the trace."""
_LOGS = ("WARNING", "ERROR")


def trace_info(metadata: Mapping[str, Any], path: str, size: int, raw: Unlinked) -> TraceInfo:
    """Return what the top-level keys and the names of a trace tell about it."""
    distributed = _mapping(metadata.get("distributedInfo"))
    properties = metadata.get("deviceProperties")
    devices = [_mapping(d) for d in properties] if isinstance(properties, list) else []
    names = tuple(text_of(d.get("name")) for d in devices)
    captured, refused = capture_table(metadata.get("syncscan"))
    return TraceInfo(
        path=path,
        size_bytes=size,
        events=raw.events,
        vendor=vendor(raw),
        devices=names,
        compute_capability=_capability(devices[0]) if devices else None,
        rank=_count(distributed.get("rank")),
        world_size=_count(distributed.get("world_size")),
        base_ns=max(id_of(metadata.get("baseTimeNanoseconds")), 0),
        with_stack=bool(metadata.get("with_stack")),
        record_shapes=bool(metadata.get("record_shapes")),
        dropped=_dropped(metadata),
        capture=captured,
        metadata=metadata,
        warnings=refused,
        drawn=raw.drawn,
    )


def vendor(raw: Unlinked) -> Vendor:
    """Return the device's vendor, by the names of calls, else by categories that one vendor alone has, else CUDA.

    A merged or converted trace may have another's metadata. A trace without device work or calls is `none`, whatever
    the machine has.
    """
    calls = _names(raw, *CALLS, Category.SYNC)
    votes = {v: sum(bool(p.match(n)) for n in calls) for v, p in _CALLS.items()}
    if any(votes.values()):
        return max(votes, key=lambda v: votes[v])
    for category in sorted(raw.categories):
        if vendor_of_category(category):
            return Vendor(vendor_of_category(category))
    return Vendor.CUDA if _names(raw, *DEVICE) else Vendor.NONE


def _names(raw: Unlinked, *categories: Category) -> list[str]:
    there = np.zeros(len(raw.strings), np.bool_)
    there[raw.slices["name"][of_categories(raw.slices["category"], categories)]] = True
    return [raw.strings[i] for i in np.flatnonzero(there).tolist()]


def _capability(device: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return major and minor number of a device's compute capability; None if missing or not a number."""
    major, minor = _count(device.get("computeMajor")), _count(device.get("computeMinor", 0))
    return None if major is None or minor is None else (major, minor)


def _dropped(metadata: Mapping[str, Any]) -> int:
    """Return how many device records the profiler's log reports as lost."""
    logs = (metadata.get(level) for level in _LOGS)
    lines = (line for log in logs if isinstance(log, list) for line in log if isinstance(line, str))
    return sum(int(lost[1]) for line in lines if (lost := _DROPPED.search(line)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    number = id_of(value)
    return None if number == NONE else number
