"""Meanings of slice names, except for calls: steps, autograd engine ops, the loader, Python frames.

Each kind of name is recognized in one place, so that no two stages disagree. Sources: torch/profiler/profiler.py
(`ProfilerStep#N`), torch/csrc/autograd/function.cpp (`autograd::engine::…`), torch/utils/data/dataloader.py
(`enumerate(DataLoader)#…`), torch/optim/optimizer.py (`Optimizer.step#…`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from syncscan.model.step_marks import names_one_step

STEP = "ProfilerStep"
"""Prefix of the profiler's step markers."""
ENGINE = "autograd::engine"
"""Prefix of the ranges that autograd's engine puts around each backward node."""

_BACKWARD_NODE = re.compile(r"\w+Backward\d*")
_OP = re.compile(r"[a-z_][a-z0-9_]*(::\w+)+(\.\w+)?(: .*)?\Z")
"""Ops with a lower-case namespace, as in the dispatcher's schemas; the engine's range appends its node's name."""
_BARE_OPS = frozenset({"detach", "detach_", "record_param_comms"})
"""Ops without a namespace: torch/csrc/autograd/TraceTypeManual.cpp, torch/csrc/distributed/c10d/ParamCommsUtils.cpp."""
_SERVICE_THREAD = re.compile(r"pt_data_(pin|worker)|pt_nccl|watchdog|watchdg|heartb")
_STEP_NUMBER = re.compile(r"ProfilerStep#?(\d{1,18})")
_FRAME = re.compile(r"(?P<file>.+)\((?P<line>\d{1,9})\): (?P<function>.+)")
COLLECTIVE_WORDS = ("ccl", "nvshmem", "device_reduce", "all_reduce", "allreduce_")
"""Lower-case words of which each collective kernel's name has one; few other names do: the reductions of torch and CUB
have `reduce_`."""
_COLLECTIVE_KERNEL = re.compile(
    r"^(void )?(nccl|rccl|msccl(pp)?|oneccl|nvshmem|ccl_)\w*(Kernel|_kernel)|ncclKernel|^ccl::"
    r"|\b(cross_device_reduce|one_shot_all_reduce|two_shot_all_reduce|allreduce_(one|two)shot|multimem_all_reduce)",
    re.IGNORECASE,
)
"""Source: nccl/src/device/generate.py (`ncclDevKernel_…`, older `ncclKernel_…`), RCCL's, MSCCL++'s; vLLM's and SGLang's
own all-reduce (`cross_device_reduce_1stage`), torch's symmetric memory."""
_SCOPES = ("DistributedDataParallel.", "FullyShardedDataParallel.", "FSDP::")
"""Prefixes of the scopes that torch puts around parts of a distributed model."""
_HOST_BACKENDS = ("gloo:", "mpi:", "ucc:")
_BACKENDS = ("nccl:", "rccl:", "gloo:", "ucc:", "mpi:", "xccl:", "hccl:")
"""Prefixes of torch's records of collectives (`profilingTitle` in torch/csrc/distributed/c10d)."""
_LOADER = "enumerate(DataLoader)"
_WORKERS = "MultiProcessingDataLoaderIter"
"""The iterator that takes batches from workers: time in its `__next__` is waiting. A loader without workers computes
there, which is the host's own work. Torchdata's names have `_Stateful` before it
(torchdata/stateful_dataloader/stateful_dataloader.py)."""
_NO_WORKERS = "SingleProcessDataLoaderIter"


def step_number(name: str) -> int | None:
    """Return the number of a step marker, `ProfilerStep#12` → 12; None for any other name."""
    match = _STEP_NUMBER.fullmatch(name)
    return int(match[1]) if match else None


def is_step(name: str) -> bool:
    """Return whether a name is a step marker of the profiler or a serving framework, not a program's scope."""
    return name.startswith(STEP) or names_one_step(name)


def is_annotation(name: str) -> bool:
    """Return whether a name is one of torch's own scopes or a step marker, whatever category the trace gives it."""
    return is_step(name) or is_optimizer(name) or is_loader(name) or name.startswith(_SCOPES)


def is_op(name: str) -> bool:
    """Return whether a name looks like an op's rather than a scope's: `aten::item`, `IndexBackward0`."""
    return _OP.match(name) is not None or is_backward_node(name) or name in _BARE_OPS


def is_torch_op(name: str) -> bool:
    """Return whether an op is one of torch's own, which programs call by name: `aten::item`."""
    return name.startswith("aten::")


def is_engine(name: str) -> bool:
    """Return whether a name is the autograd engine's range around a backward node."""
    return name.startswith(ENGINE)


def program_op(names: Sequence[str]) -> str:
    """Return the outermost op that a program called, skipping the engine's; empty without one."""
    return next((name for name in names if not is_engine(name)), "")


def is_backward(name: str) -> bool:
    """Return whether a range lies in a backward pass: the engine's, or a Python or C++ autograd function's."""
    return name.startswith((ENGINE, "torch::autograd::"))


def is_backward_node(name: str) -> bool:
    """Return whether an op is a node of autograd's graph: `IndexBackward0`."""
    return "Backward" in name and _BACKWARD_NODE.fullmatch(name) is not None  # few names have it: no search for others


def is_gradient(name: str) -> bool:
    """Return whether an op accumulates a parameter's gradient, once per parameter of a backward pass."""
    return name == "torch::autograd::AccumulateGrad"


def is_wrapper(name: str) -> bool:
    """Return whether an op only contains others: the engine, a backward node, a compiled region."""
    compiled = is_compiled_region(name) or name.startswith(("## Call", "TorchDynamo", "CompiledFunction"))
    return compiled or is_backward(name) or is_backward_node(name)


def is_optimizer(name: str) -> bool:
    """Return whether a name is torch's scope around an optimizer's `step` or `zero_grad`."""
    return name.startswith("Optimizer.")


def is_optimizer_step(name: str) -> bool:
    """Return whether a name is torch's scope around `Optimizer.step`: `Optimizer.step#Adam.step`."""
    return name.startswith("Optimizer.step#")


def is_optimizer_zero_grad(name: str) -> bool:
    """Return whether a name is torch's scope around `Optimizer.zero_grad`: `Optimizer.zero_grad#Adam.zero_grad`."""
    return name.startswith("Optimizer.zero_grad#")


def is_loader(name: str) -> bool:
    """Return whether a name is torch's scope around a DataLoader's `__next__`."""
    return name.startswith(_LOADER)


def is_loader_with_workers(name: str) -> bool:
    """Return whether a name is that scope of a loader with worker processes: time in it is waiting, not work."""
    return name.startswith(_LOADER) and _WORKERS in name


def is_collective_kernel(name: str) -> bool:
    """Return whether device work communicates between ranks: kernels of NCCL, RCCL, MSCCL, oneCCL or NVSHMEM.

    Such a kernel runs from when its own rank arrives until the last one has and the data are there: time in it is
    waiting for other ranks or the network, not work of this device.
    """
    folded = (
        name.lower()
    )  # most kernel names are long and have none of the words; the regex search is twenty times slower
    return any(word in folded for word in COLLECTIVE_WORDS) and _COLLECTIVE_KERNEL.search(name) is not None


def is_loader_without_workers(name: str) -> bool:
    """Return whether a name is that scope of a loader that builds its batches on the calling thread."""
    return name.startswith(_LOADER) and _NO_WORKERS in name


def waits_for_event(name: str) -> bool:
    """Return whether a row of the profiler's (`cuda_sync`) is a wait for an event, by a host or a stream."""
    return name in ("Event Sync", "Stream Wait Event")


def is_host_collective(name: str) -> bool:
    """Return whether a name is a collective of a backend that communicates on the host, from its begin to its end.

    torch's record of an NCCL collective is over when it is launched: there the device's kernel tells.
    """
    return name.startswith(_HOST_BACKENDS)


def is_collective(name: str) -> bool:
    """Return whether an op is a collective or torch's record of one: `c10d::allreduce_`, `nccl:all_reduce`."""
    return name.startswith(("c10d::", "record_param_comms", "_c10d_functional::", "c10d_functional::", *_BACKENDS))


def is_compiled_graph(name: str) -> bool:
    """Return whether an op is Inductor's, around a compiled graph: `## Call CompiledFxGraph … ##`."""
    return name.startswith("## Call CompiledFxGraph")


def is_compiled_region(name: str) -> bool:
    """Return whether an op is Dynamo's, around a compiled region: `Torch-Compiled Region: 0/0`."""
    return name.startswith("Torch-Compiled Region")


def is_autograd_thread(name: str) -> bool:
    """Return whether a thread name is that of an autograd thread, which runs backward passes."""
    return "pt_autograd" in name


def is_service_thread(name: str) -> bool:
    """Return whether a thread name isn't the program's: it pins memory for a loader, or watches NCCL."""
    return _SERVICE_THREAD.search(name) is not None


@lru_cache(1 << 16)
def frame_parts(name: str) -> tuple[str, int, str] | None:
    """Return file, line and function of a recorded Python frame, `file.py(LINE): function`; None for built-ins."""
    match = _FRAME.fullmatch(name) if "\n" not in name else None  # else tried from each line on, to the same end
    return (match["file"], int(match["line"]), match["function"]) if match else None
