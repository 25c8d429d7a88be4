"""Calls that copy a tensor with `non_blocking=True` go in; those that hold the host all the same come out.

Torch's debug mode is silent about them: it hears of blocking copies alone. What decides is in `copy_kernel_cuda`
(aten/src/ATen/native/cuda/Copy.cu): memory that isn't pinned, and whatever goes through a temporary of such memory,
because the two sides differ in their strides.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from syncscan.capture.entry_points import Function, Method, replaced

STAGED_BYTES = 1_048_576
"""Bytes that went from pageable memory to a busy device without waiting, in 0.1 ms; 4 MB took the device's 100 ms
(H200, torch 2.11, `benchmarks/guard_cost.py`). The driver takes so many into a buffer of its own."""
SHORT_NS = 50_000
"""A copy of more than `STAGED_BYTES` from pageable memory takes at least as long: the host reads its bytes, 0.1 ms a MB
(measured there). Shorter calls to a device aren't looked at: asking `is_pinned()` alone takes 1.4 µs."""

_PLACES = (("to", True), ("cuda", True), ("copy_", False))
"""A method of tensors, and whether it copies from its tensor; else into it."""


def watch(note: Callable[[], None]) -> Callable[[], None]:
    """Have `note()` called after each non-blocking copy that held its thread.

    A call of one argument, which asks for nothing non-blocking, is only passed on; of others first that is asked which
    a short copy to a device answers, for there a microsecond is much of the call.

    Returns:
        A function that puts everything back.
    """
    torch = importlib.import_module("torch")
    plain = (torch.Tensor, torch.nn.Parameter)
    return replaced(("torch.Tensor", name, _noting(note, plain, outwards)) for name, outwards in _PLACES)


def _noting(note: Callable[[], None], plain: tuple[type, ...], outwards: bool) -> Callable[[Function], Method]:
    def wrap(original: Function) -> Method:
        def copied(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if not keywords and len(arguments) < 2:
                return original(tensor, *arguments)
            begun = perf_counter_ns()
            result = original(tensor, *arguments, **keywords)
            target = result if outwards else tensor
            # Tracers' tensors, which have no memory, are of classes of their own.
            if type(target) in plain and (perf_counter_ns() - begun >= SHORT_NS or target.is_cpu):
                source = tensor if outwards else _source(arguments, keywords)
                asked = keywords.get("non_blocking") or _flag(arguments)
                if asked and type(source) in plain and holds(source, target):
                    note()
            return result

        return Method(original, copied)

    return wrap


def _source(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What `copy_` reads, whichever way it was given."""
    return arguments[0] if arguments else keywords.get("other")


def _flag(arguments: tuple[Any, ...]) -> bool:
    """`non_blocking` where it was given by its place: of each of these methods the first bool behind the first."""
    return next((given for given in arguments[1:] if given.__class__ is bool), False)


def holds(source: Any, target: Any) -> bool:
    """Whether the host waits in a non-blocking copy from one tensor to another.

    Args:
        source: the tensor that is read.
        target: the tensor that is written, of any shape that the source can be expanded to.
    """
    if source.is_cpu == target.is_cpu or target.numel() == 0:
        return False
    if target.is_cpu:
        return not (target.is_pinned() and (target.is_contiguous() or _alike(source, target)))
    if target.numel() * source.element_size() <= STAGED_BYTES:
        return False
    contiguous = source.is_contiguous() and source.shape == target.shape
    return not (source.is_pinned() and (contiguous or _alike(source, target)))


def _alike(source: Any, target: Any) -> bool:
    """Whether both lie in memory in the same order and without gaps, so that bytes can be copied as they are."""
    same = source.dtype == target.dtype and source.shape == target.shape and source.stride() == target.stride()
    order = sorted(range(source.dim()), key=lambda axis: -source.stride(axis))
    return bool(same and source.permute(order).is_contiguous())
