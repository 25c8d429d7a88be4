"""Mark the values that the host reads: two reads with the same mark read the same value."""

from __future__ import annotations

import hashlib
import importlib
from typing import Any

MOST_BYTES = 1 << 16
"""Size of the largest tensor that gets a mark: what every layer reads is a number or some lengths."""


def mark_of(tensor: Any) -> str:
    """Return a mark of a tensor's values, type and shape.

    Empty where equal values say little: of flags and of zeros and ones, which many different things come to.

    Args:
        tensor: the tensor on the CPU.
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
