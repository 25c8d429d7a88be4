"""A machine as with a GPU, whose torch warns of syncs: by the calls of Python's by which torch does it."""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from typing import Any

import pytest

from syncscan.capture import device

SYNC = b"called a synchronizing CUDA operation (Triggered internally at /pytorch/c10/cuda/CUDAFunctions.cpp:180.)"
"""As torch 2.13 says it; 1.10 to 2.14 differ in the path alone."""
PROTOTYPE = b"Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations"


_warn_ex = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p, ctypes.c_ssize_t)
warn = functools.partial(_warn_ex(("PyErr_WarnEx", ctypes.pythonapi)), UserWarning)
"""As torch's handler of warnings does when it returns to Python (torch/csrc/Exceptions.cpp)."""


class Machine:
    """Stands for a GPU: `mode` is torch's debug mode, `sync` a read-back."""

    def __init__(self) -> None:
        self.mode = 0
        self.set = 0

    def set_mode(self, mode: int) -> None:
        self.set += 1
        if self.set == 1:
            warn(PROTOTYPE, 1)
        self.mode = mode

    @property
    def sync(self) -> Callable[..., Any]:
        """A read-back: like torch's own functions it has no frame in Python."""
        return self.saying(SYNC)

    def saying(self, text: bytes) -> Callable[..., Any]:
        """Make torch use these words in its warnings."""
        return functools.partial(warn, text, 1) if self.mode == 1 else int


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    inner = pytest.importorskip("torch")._C
    monkeypatch.setattr(device, "vendor", lambda: "cuda")
    monkeypatch.setattr(inner, "_cuda_set_sync_debug_mode", machine.set_mode, raising=False)
    monkeypatch.setattr(inner, "_cuda_get_sync_debug_mode", lambda: machine.mode, raising=False)
    monkeypatch.setattr(inner, "_cuda_synchronize", lambda: None, raising=False)
    return machine


@pytest.fixture
def process(machine: Machine) -> Callable[[], dict[str, Any]]:
    """Everything that a guard touches while it is armed."""
    import warnings

    import torch

    from syncscan.guarding import dispatch as guarded

    def state() -> dict[str, Any]:
        scope = importlib.import_module("torch.autograd.profiler").record_function
        names = ("to", "cuda", "copy_", "coalesce")
        return {
            "filters": (id(warnings.filters), list(warnings.filters), warnings.showwarning),
            "mode": machine.mode,
            "tensor": [(vars(torch.Tensor).get(name), getattr(torch.Tensor, name)) for name in names],
            "inner": {n: v for n, v in vars(torch._C).items() if n.startswith(("_cuda", "_accelerator", "_xpu"))},
            "scopes": (scope.__enter__, scope.__exit__),
            "vf": getattr(torch._VF, "unique_dim", None),
            "armed": dict(guarded._armed),
        }

    return state
