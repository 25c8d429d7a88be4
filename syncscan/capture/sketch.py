"""Sketch tensors as a few numbers each, whose distance approximates the distance of the tensors.

A tensor of up to `NUMBERS` elements is stored whole. Of a larger one each element is added, with a random sign, to
one of as many sums: a count sketch (Charikar, Chen, Farach-Colton 2002), linear, so that the difference of two sketches
is the sketch of the difference, and its length within 2 / sqrt(2 * NUMBERS) = 18 % of the true one (twice the standard
error). It is taken on the CPU in float64, so that it is the same whatever device the tensors lie on.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

NUMBERS = 64
PIECE = 1 << 20
"""Elements that are sketched at a time; a multiple of `NUMBERS`."""
LOT = 20


def sketch(tensors: Iterable[Any]) -> dict[str, Any]:
    """Return the sketches of tensors as plain lists: `shapes`, `numbers`, `epsilons`."""
    listed = list(tensors)
    return {
        "shapes": [list(t.shape) for t in listed],
        "numbers": [_numbers(t) for t in listed],
        "epsilons": [_epsilon(t) for t in listed],
    }


def _numbers(tensor: Any) -> list[float]:
    torch = importlib.import_module("torch")
    flat = _whole(tensor.detach()).reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    if flat.numel() <= NUMBERS:
        return [float(x) for x in flat.to("cpu", torch.float64).tolist()]
    sums = torch.zeros(NUMBERS, dtype=torch.float64)
    lots = torch.Generator().manual_seed(LOT)
    for piece in flat.split(PIECE):
        values = piece.to("cpu", torch.float64)
        signs = torch.randint(0, 2, values.shape, generator=lots, dtype=torch.int8) * 2 - 1
        rest = torch.zeros(-len(values) % NUMBERS, dtype=torch.float64)
        sums += torch.cat([values * signs, rest]).reshape(-1, NUMBERS).sum(0)
    return [float(x) for x in sums.tolist()]


def _whole(tensor: Any) -> Any:
    """Return a sharded tensor's local part, a sparse one's dense form, a plain one as it is."""
    if hasattr(tensor, "to_local"):
        return tensor.to_local()
    return tensor.to_dense() if tensor.layout is not importlib.import_module("torch").strided else tensor


def _epsilon(tensor: Any) -> float:
    torch = importlib.import_module("torch")
    return float(torch.finfo(tensor.dtype).eps) if tensor.dtype.is_floating_point else 0.0
