"""Find `non_blocking=True` copies that block the host anyway.

Torch's debug mode is silent about them: it hears of blocking copies alone. What decides is in `copy_kernel_cuda`
(aten/src/ATen/native/cuda/Copy.cu): memory that isn't pinned, and whatever goes through a temporary of such memory,
because the two sides differ in their strides.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from syncscan.capture.torch_hooks import Function, Method, replaced
from syncscan.dryrun.device_kinds import is_direct

STAGED_BYTES = 1_048_576
"""Largest copy in bytes from pageable memory to a busy device that didn't wait: 0.1 ms; 4 MB took the device's 100 ms
(H200, torch 2.11, `benchmarks/guard_cost.py`). The driver copies this much into its own buffer."""
SHORT_NS = 50_000
"""Least duration of a copy of more than `STAGED_BYTES` from pageable memory: the host reads its bytes, 0.1 ms per MB
(measured there). Shorter calls to a device aren't examined: `is_pinned()` alone takes 1.4 µs."""

_NOT_GIVEN: Any = object()


def watch(note: Callable[[], None]) -> Callable[[], None]:
    """Call `note()` after each non-blocking copy that blocked its thread.

    A call of one argument, which asks for nothing non-blocking, is only passed on, and of a copy to a device only how
    long it took is asked: a microsecond is much of such a call.
    """
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    outwards, inwards = _noting_outwards(note, plain), _noting_inwards(note, plain)
    wrapped = (("to", outwards), ("cuda", outwards), ("copy_", inwards))
    return replaced(("torch.Tensor", name, wrap) for name, wrap in wrapped)


def _noting_outwards(note: Callable[[], None], plain: tuple[type, ...]) -> Callable[[Function], Method]:
    """Return a wrapper for methods that copy their tensor elsewhere, with all the signatures of `to`."""

    def wrap(original: Function) -> Method:
        def copied(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if not keywords and len(arguments) < 2:
                return original(tensor, *arguments)
            begun = perf_counter_ns()
            target = original(tensor, *arguments, **keywords)
            # Tracers' tensors, which have no memory, are of classes of their own.
            if type(target) in plain and type(tensor) in plain:
                long = perf_counter_ns() - begun >= SHORT_NS
                asked = (long or target.is_cpu) and (keywords.get("non_blocking") or _flag(arguments))
                if asked and holds(tensor, target):
                    note()
            return target

        return Method(original, copied)

    return wrap


def _noting_inwards(note: Callable[[], None], plain: tuple[type, ...]) -> Callable[[Function], Method]:
    """Return a wrapper for `copy_`, which has one signature: repacking arguments takes as long as all the rest here."""

    def wrap(original: Function) -> Method:
        def copied(tensor: Any, other: Any = _NOT_GIVEN, non_blocking: Any = False, **unknown: Any) -> Any:
            if unknown or other is _NOT_GIVEN:  # torch says what is wrong with them
                return original(tensor, *(() if other is _NOT_GIVEN else (other,)), **unknown)
            if not non_blocking:
                return original(tensor, other)
            begun = perf_counter_ns()
            result = original(tensor, other, non_blocking)
            long = perf_counter_ns() - begun >= SHORT_NS
            if type(tensor) in plain and type(other) in plain and (long or tensor.is_cpu) and holds(other, tensor):
                note()
            return result

        return Method(original, copied)

    return wrap


def _flag(arguments: tuple[Any, ...]) -> bool:
    """Return `non_blocking` given by position: in each of these methods the first bool after the first argument."""
    return next((given for given in arguments[1:] if given.__class__ is bool), False)


def holds(source: Any, target: Any) -> bool:
    """Return whether the host waits in a non-blocking copy from one tensor to another."""
    if source.is_cpu == target.is_cpu or target.numel() == 0:
        return False
    if target.is_cpu:
        return not (target.is_pinned() and is_direct(source, target, outwards=True))
    if target.numel() * source.element_size() <= STAGED_BYTES:
        return False
    return not (source.is_pinned() and is_direct(source, target, outwards=False))
