"""What the names of slices mean, on every vendor: steps, launches, event calls, the engine's ops, the loader.

One place tells each kind of name, so that no two stages disagree on it. Sources: the runtime APIs of CUDA and HIP;
torch/profiler/profiler.py (`ProfilerStep#N`), torch/csrc/autograd/function.cpp (`autograd::engine::…`),
torch/utils/data/dataloader.py (`enumerate(DataLoader)#…`), torch/optim/optimizer.py (`Optimizer.step#…`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

STEP = "ProfilerStep"
"""What the profiler's step marks begin with."""
ENGINE = "autograd::engine"
"""What the ranges begin with that autograd's engine puts around each backward node."""

_STEP_NUMBER = re.compile(r"ProfilerStep#?(\d{1,18})")
_LAUNCH = re.compile(r"LaunchKernel")
_RECORD = re.compile(r"(cuda|hip)EventRecord(WithFlags)?(_ptsz)?")
_STREAM_WAIT = re.compile(r"(cuda|hip)StreamWaitEvent(_ptsz)?")
_EVENT_SYNCHRONISE = re.compile(r"(cuda|hip)EventSynchronize(_ptsz)?")
_EVENT_QUERY = re.compile(r"(cuda|hip)EventQuery(_ptsz)?")
_SYNCHRONISE = re.compile(r"(cuda|hip)(Device|Event|Stream)Synchronize(_ptsz)?")
_DEVICE_SYNCHRONISE = re.compile(r"(cuda|hip|xpu|mtia)?DeviceSynchronize")
_VERSION = re.compile(r"(_ptsz|_ptds|_v\d+)+$")
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)")
_LOADER = "enumerate(DataLoader)"
_WORKERS = "_MultiProcessingDataLoaderIter"
"""The iterator that takes batches from workers: the time in its `__next__` is waiting. A loader without workers
computes there, which is the host's own work."""


def step_number(name: str) -> int | None:
    """The number of a step mark, `ProfilerStep#12` → 12; None for any other name."""
    match = _STEP_NUMBER.fullmatch(name)
    return int(match[1]) if match else None


def is_step(name: str) -> bool:
    """Whether this is one of the profiler's step marks, which are no scope of the program's."""
    return name.startswith(STEP)


def is_engine(name: str) -> bool:
    """Whether this is the autograd engine's range around a backward node."""
    return name.startswith(ENGINE)


def program_op(names: Sequence[str]) -> str:
    """Of the ops around something, outermost first, the one that a program called: no engine's; empty without."""
    return next((name for name in names if not is_engine(name)), "")


def is_backward(name: str) -> bool:
    """Whether this range lies in a backward pass: the engine's, or one of a Python or C++ autograd function."""
    return name.startswith((ENGINE, "torch::autograd::"))


def is_optimizer(name: str) -> bool:
    """Whether this is the scope that torch puts around an optimizer's `step` or `zero_grad`."""
    return name.startswith("Optimizer.")


def is_optimizer_step(name: str) -> bool:
    """Whether this is torch's own scope around `Optimizer.step`: `Optimizer.step#Adam.step`."""
    return name.startswith("Optimizer.step#")


def is_loader(name: str) -> bool:
    """Whether this is the scope that torch puts around a DataLoader's `__next__`."""
    return name.startswith(_LOADER)


def is_loader_with_workers(name: str) -> bool:
    """The same for a loader with worker processes only: time in it is waiting, not work of this thread."""
    return name.startswith(_LOADER) and _WORKERS in name


def is_launch(name: str) -> bool:
    """Whether this runtime or driver call launches a kernel."""
    return _LAUNCH.search(name) is not None


def is_event_record(name: str) -> bool:
    """Whether this call records an event on a stream."""
    return _RECORD.fullmatch(name) is not None


def is_stream_wait(name: str) -> bool:
    """Whether this call makes a stream wait for an event, which holds the device and not the host."""
    return _STREAM_WAIT.fullmatch(name) is not None


def is_event_synchronise(name: str) -> bool:
    """Whether this call holds the host until an event is reached."""
    return _EVENT_SYNCHRONISE.fullmatch(name) is not None


def is_event_query(name: str) -> bool:
    """Whether this call asks if an event is reached, without waiting."""
    return _EVENT_QUERY.fullmatch(name) is not None


def is_synchronise(name: str) -> bool:
    """Whether this call holds the host until a device, stream or event is done (CUDA and HIP)."""
    return _SYNCHRONISE.fullmatch(name) is not None


def is_device_synchronise(name: str) -> bool:
    """Whether this call holds the host until the whole device is done."""
    return _DEVICE_SYNCHRONISE.fullmatch(name) is not None


def api_name(name: str) -> str:
    """A runtime call's name without its version suffix: `cudaStreamSynchronize_ptsz` → `cudaStreamSynchronize`."""
    return _VERSION.sub("", name)


def is_graph_launch(name: str) -> bool:
    """Whether this call launches a whole graph: `cudaGraphLaunch`; its kernels share its correlation."""
    return "GraphLaunch" in name


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
