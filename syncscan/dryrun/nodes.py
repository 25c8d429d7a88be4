"""From a node of the backward pass to what the host waits for in it on CUDA; and those that ask only a CPU's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from syncscan.dryrun.recording import Wait
from syncscan.dryrun.waits import item, read

QUIET = ("MaxBackward", "MinBackward", "MedianBackward", "NanmedianBackward", "AmaxBackward", "AminBackward")
"""Nodes of the backward pass that look at values on a CPU and not on a GPU (FunctionsManual.cpp)."""


def _of_factors(wait: Wait, least: int) -> Callable[[Any], Iterable[Wait]]:
    """What the gradient of a product waits for, that of one factor apart: the number of those that are zero."""
    return lambda node: (wait,) if node._saved_self.numel() >= least and node._saved_self.dim() else ()


def _filled(node: Any) -> Iterable[Wait]:
    """The gradient of a fill's value, where it is asked for, is made of what was filled."""
    if node.next_functions[1][0] is not None:
        yield read().inside("aten::masked_select", "aten::nonzero")


WAITS: dict[str, Callable[[Any], Iterable[Wait]]] = {
    "MaskedFillBackward1": _filled,
    "ProdBackward0": _of_factors(read().inside("aten::nonzero"), 0),
    "ProdBackward1": _of_factors(item(), 0),
    "CumprodBackward0": _of_factors(item(), 2),
}
"""Nodes of the backward pass that look at values on a GPU, and don't while a dispatch mode is on, as here
(FunctionsManual.cpp, `isTensorSubclassLike`; `cumprod_backward` in ReduceOps.cpp)."""
