"""List what the host waits for on CUDA in nodes of the backward pass, and nodes that wait only on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from syncscan.dryrun.recording import DryWait
from syncscan.dryrun.wait_table import item, read

QUIET = ("MaxBackward", "MinBackward", "MedianBackward", "NanmedianBackward", "AmaxBackward", "AminBackward")
"""Nodes of the backward pass that look at values on a CPU but not on a GPU (FunctionsManual.cpp)."""


def _of_factors(wait: DryWait, least: int) -> Callable[[Any], Iterable[DryWait]]:
    """Yield the waits of a product's gradient: the number of zero factors, except for a single factor."""
    return lambda node: (wait,) if node._saved_self.numel() >= least and node._saved_self.dim() else ()


def _fill_reads(node: Any) -> Iterable[DryWait]:
    """Yield the read for the gradient of a fill's value, if that is needed."""
    if node.next_functions[1][0] is not None:
        yield read().inside("aten::masked_select", "aten::nonzero")


WAITS: dict[str, Callable[[Any], Iterable[DryWait]]] = {
    "MaskedFillBackward1": _fill_reads,
    "ProdBackward0": _of_factors(read().inside("aten::nonzero"), 0),
    "ProdBackward1": _of_factors(item(), 0),
    "CumprodBackward0": _of_factors(item(), 2),
}
"""Nodes of the backward pass that look at values on a GPU, but not while a dispatch mode is on, as here
(FunctionsManual.cpp, `isTensorSubclassLike`; `cumprod_backward` in ReduceOps.cpp)."""
