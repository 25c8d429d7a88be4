"""From the name of an event to what it is: a step, a runtime call, a graph, a collective, a Python frame."""

from __future__ import annotations

import re
from functools import lru_cache

_VERSION = re.compile(r"(_ptsz|_ptds|_v\d+)+$")
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)")
_DEVICE_SYNCHRONISE = re.compile(r"(cuda|hip|xpu|mtia)?DeviceSynchronize")


def is_step(name: str) -> bool:
    """Whether an annotation is one of the profiler's own steps, `ProfilerStep#7` (old torch wrote no number)."""
    return name.startswith("ProfilerStep")


def is_optimizer_step(name: str) -> bool:
    """Whether an annotation is torch's own around `Optimizer.step`, `Optimizer.step#Adam.step`."""
    return name.startswith("Optimizer.step#")


def api_name(name: str) -> str:
    """A runtime call's name without its version suffix: `cudaStreamSynchronize_ptsz` → `cudaStreamSynchronize`."""
    return _VERSION.sub("", name)


def is_graph_launch(api: str) -> bool:
    """Whether a runtime call launches a whole graph: `cudaGraphLaunch`; its kernels share its correlation."""
    return "GraphLaunch" in api


def is_device_synchronise(api: str) -> bool:
    """Whether a runtime call waits for all work of a device: `cudaDeviceSynchronize`."""
    return bool(_DEVICE_SYNCHRONISE.fullmatch(api))


def is_collective(name: str) -> bool:
    """Whether an op is a collective, or torch's record of one: `c10d::allreduce_`, `nccl:all_reduce`."""
    return name.startswith(("c10d::", "nccl:", "record_param_comms", "_c10d_functional::", "c10d_functional::"))


def is_compiled_region(name: str) -> bool:
    """Whether an op is Dynamo's around a compiled region, `Torch-Compiled Region: 0/0`."""
    return name.startswith("Torch-Compiled Region")


@lru_cache(1 << 16)
def frame_parts(name: str) -> tuple[str, int, str] | None:
    """File, line and function of a recorded Python frame, `file.py(LINE): function`; None for built-ins and modules."""
    match = _FRAME.fullmatch(name)
    return (match["file"], int(match["line"]), match["function"]) if match else None
