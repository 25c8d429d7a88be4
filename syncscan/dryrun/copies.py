"""Say whether a copy between host and device moves the tensors' own bytes, or goes through memory of its own.

Source: `copy_kernel_cuda` in aten/src/ATen/native/cuda/Copy.cu of torch 2.13. With `non_blocking=True` types are
converted on the device; what has other strides than its counterpart is gathered in, or scattered from, memory of the
host that isn't pinned, and so the call returns when the host's side of the copy is done.
"""

from __future__ import annotations

import hashlib
import importlib
from typing import Any


def is_direct(source: Any, target: Any, *, outwards: bool) -> bool:
    """Return whether a copy with `non_blocking=True` reads, or `outwards` writes, the host tensor's own memory.

    The target has any shape that the source can be expanded to.
    """
    dense = target.is_contiguous() if outwards else source.is_contiguous() and source.numel() == target.numel()
    return dense or alike(source, target)


def alike(source: Any, target: Any) -> bool:
    """Return whether both have the same memory layout without gaps, so that bytes can be copied unchanged."""
    same = source.dtype == target.dtype and source.shape == target.shape and source.stride() == target.stride()
    order = sorted(range(source.dim()), key=lambda axis: -source.stride(axis))
    return bool(same and source.permute(order).is_contiguous())


MOST_BYTES = 1 << 16
"""Size of the largest tensor that gets a mark: what every layer reads is a number or some lengths."""


def mark_of(tensor: Any) -> str:
    """Return a mark of a tensor's values, type and shape.

    Empty where equal values say little: of flags and of zeros and ones, which many different things come to.
    """
    torch = importlib.import_module("torch")
    try:
        return _mark(torch, tensor)
    except (RuntimeError, TypeError, NotImplementedError):  # a kind of tensor of its own, which holds no plain values
        return ""


def _mark(torch: Any, tensor: Any) -> str:
    if tensor.layout != torch.strided or tensor.dtype == torch.bool or tensor.is_quantized:
        return ""
    size = tensor.numel() * tensor.element_size()
    if not 0 < size <= MOST_BYTES:
        return ""
    plain = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if bool(((plain == 0) | (plain == 1)).all()):
        return ""
    values = bytes(plain.reshape(-1).view(torch.uint8).numpy())
    return hashlib.blake2b(repr((str(plain.dtype), tuple(plain.shape))).encode() + values, digest_size=8).hexdigest()
