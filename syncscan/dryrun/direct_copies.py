"""Say whether a copy between host and device moves the tensors' own bytes, or goes through memory of its own.

Source: `copy_kernel_cuda` in aten/src/ATen/native/cuda/Copy.cu of torch 2.13. With `non_blocking=True` types are
converted on the device; what has other strides than its counterpart is gathered in, or scattered from, memory of the
host that isn't pinned, and so the call returns when the host's side of the copy is done.
"""

from __future__ import annotations

from typing import Any


def is_direct(source: Any, target: Any, *, outwards: bool) -> bool:
    """Return whether a copy with `non_blocking=True` reads, or writes, the host tensor's own memory.

    Args:
        source: the tensor that is read.
        target: the tensor that is written, of any shape that the source can be expanded to.
        outwards: whether it is to the host.
    """
    dense = target.is_contiguous() if outwards else source.is_contiguous() and source.numel() == target.numel()
    return dense or alike(source, target)


def alike(source: Any, target: Any) -> bool:
    """Return whether both have the same memory layout without gaps, so that bytes can be copied unchanged."""
    same = source.dtype == target.dtype and source.shape == target.shape and source.stride() == target.stride()
    order = sorted(range(source.dim()), key=lambda axis: -source.stride(axis))
    return bool(same and source.permute(order).is_contiguous())
