"""Shapes that depend on values: the host needs the number of elements before it can go on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.lint.pattern import Hit, LintSite, pattern
from syncscan.lint.values import TENSOR, Value, ValueKind
from syncscan.model.finding import Confidence
from syncscan.source.code_pattern import argument, splats


def _parts(index: ast.Subscript) -> list[ast.expr]:
    return index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]


@pattern(ast.Subscript, rules="boolean-index boolean-assign")
def masks(site: LintSite) -> Hit | None:
    """Match `x[x > 0]`, `x[mask] = tensor`: the number of elements is read back; a Python number doesn't wait."""
    node = site.node
    assert isinstance(node, ast.Subscript)
    values = [site.value(part) for part in _parts(node)]
    given = [value for value in values if value.mask and not value.on_host]
    unclear = bool(given) and all(value.kind is ValueKind.UNKNOWN for value in given)
    waits = site.place if unclear else site.waits_for(*(value for value in given if value.tensor))
    if site.value(node.value).on_host or not given or not waits:
        return None
    if isinstance(node.ctx, ast.Load):
        return Hit(
            "boolean-index",
            "x[mask] waits for the number of selected elements",
            "Keep the shape: torch.where(mask, x, 0), a masked sum, (x * mask).sum() / mask.sum(), or the loss's "
            "ignore_index.",
            Confidence.LOW if unclear else Confidence.MEDIUM,
        )
    if not site.value(site.evaluator.assigned_value).tensor:
        return None
    return Hit(
        "boolean-assign",
        "x[mask] = tensor waits for the number of selected elements",
        "torch.where(mask, value, x), or masked_scatter_ for a vector; a Python number as value doesn't wait.",
    )


_INDEX = (
    "x.index_select(0, i.view(1)) or torch.gather for an index (a copy, not a view); for x[:n] mask with "
    "torch.arange(len(x), device=x.device) < n."
)
_LIST = (
    "Create the index once, as a tensor on the device (a buffer: torch.tensor([…], device=x.device)); use a slice "
    "for a range."
)
_ON_HOST = "Keep the tensor on the device too, or use an index that is on the host."


@pattern(ast.Subscript, rules="tensor-index scalar-assign cpu-index")
def indices(site: LintSite) -> Hit | None:
    """Match `x[:n]`, `x[i]` with a scalar tensor, `x[index] = 1.0`, `x[[0, 3]]`: values cross over."""
    node = site.node
    assert isinstance(node, ast.Subscript)
    slices = [part for part in _parts(node) if isinstance(part, ast.Slice)]
    bounds = [bound for part in slices for bound in (part.lower, part.upper, part.step) if bound is not None]
    if any(site.waits_for(site.value(bound)) for bound in bounds):
        return Hit("tensor-index", "a slice waits for its bound, which is a tensor", _INDEX)
    given = [site.value(part) for part in _parts(node) if part not in slices]
    indexed = site.value(node.value)
    if indexed.kind in (ValueKind.TENSOR, ValueKind.OUTPUT) and any(v.listed for v in given):
        waits = site.waits_for(indexed if indexed.tensor else TENSOR)
        return Hit("cpu-index", "a list used as an index is copied to the device", _LIST) if waits else None
    tensors = [v for v in given if v.tensor]
    if not site.waits_for(*tensors) or any(v.mask for v in tensors):
        return None
    scalar = any(v.scalar for v in tensors)
    if isinstance(node.ctx, ast.Load):
        if indexed.kind is ValueKind.CPU:  # torch takes no other index of a device there than a number
            return Hit("tensor-index", "a tensor on the host waits for its index, a tensor on the device", _ON_HOST)
        waits = scalar and indexed.kind is not ValueKind.UNKNOWN
        return Hit("tensor-index", "an index waits for a tensor", _INDEX) if waits else None
    value = site.evaluator.assigned_value
    number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    if not number or scalar or not indexed.tensor:
        return None
    return Hit(
        "scalar-assign",
        "x[index] = number copies the number to the device synchronously",
        "x.index_fill_(0, index, value), or a device tensor as value.",
    )


_MASK = (
    "Keep the shape: torch.where with three arguments, or work with the mask itself; torch.nonzero_static with a bound."
)
_SPARSE = "Convert once, before the loop; or stay dense with a mask."
_OPS = {
    "nonzero": ("nonzero", _MASK),
    "argwhere": ("nonzero", _MASK),
    "where": ("nonzero", _MASK),
    "masked_select": ("masked-select", "Keep the shape: torch.where(mask, x, 0), or a sum weighted by the mask."),
    "unique": ("unique", "Sort and compare neighbors, which keeps the shape; count known classes with scatter_add_."),
    "unique_consecutive": ("unique", "Compare neighbors, which keeps the shape: x[1:] != x[:-1]."),
    "bincount": ("bincount", "torch.zeros(n, device=…).scatter_add_(0, x, ones) with the known number of classes."),
    "histc": ("histc", "Pass min and max."),
    "nn.functional.one_hot": ("one-hot", "Pass num_classes."),
    "repeat_interleave": ("repeat-interleave", "Pass output_size if the sum of the repeats is known."),
    "coalesce": ("coalesce", "Build it coalesced and pass is_coalesced=True."),
    "to_sparse": ("sparse-op", _SPARSE),
    "to_sparse_csr": ("sparse-op", _SPARSE),
}
"""Op → its rule, and what to do instead."""
_NMS = frozenset(f"torchvision.ops.{name}" for name in ("nms", "batched_nms", "boxes.nms", "boxes.batched_nms"))


@pattern(ast.Call, rules=" ".join([*dict.fromkeys(rule for rule, _ in _OPS.values()), "nms"]))
def sized_ops(site: LintSite) -> Hit | None:
    """Match `nonzero`, `unique`, `torch.where(cond)`, `one_hot(x)` without the argument that would avoid the wait."""
    call, name = site.call, site.torch(site.call)
    if splats(call):
        return None
    if site.evaluator.names.full_name(call.func) in _NMS and site.place:
        fix = "Batch the images: batched_nms once; topk with a fixed k."
        return Hit("nms", "nms waits for the number of boxes it keeps", fix)
    of = site.operand(*_OPS)
    if of is None:
        return None
    op = name or call.func.attr  # type: ignore[attr-defined]
    value = site.value(of)
    if value.kind is ValueKind.UNKNOWN and name:
        value = site.value(call)
    if not site.waits_for(value) or _is_spared(op, site, 1 if name else 0):
        return None
    rule, fix = _OPS[op]
    shown = "torch.where(condition)" if op == "where" else op.rpartition(".")[2]
    return Hit(rule, f"{shown} waits for the size of its result", fix)


def _is_spared(op: str, site: LintSite, first: int) -> bool:
    """Return whether the arguments, of which the first after the tensor has this position, avoid the wait."""
    call = site.call
    if op == "where":
        return not first or len(call.args) + len(call.keywords) != 1
    if op == "nn.functional.one_hot":
        return argument(call, "num_classes", 1) is not None
    if op == "repeat_interleave":
        repeats = argument(call, "repeats", first)
        on_host = repeats is not None and not site.value(repeats).tensor
        return on_host or argument(call, "output_size") is not None
    bounds = argument(call, "min", first + 1), argument(call, "max", first + 2)
    return op == "histc" and None not in bounds


_SIZED = ("arange", "zeros", "ones", "empty", "full", "linspace", "eye", "randn", "rand")
_SHAPED = ("view", "reshape", "expand", "repeat", "tile", "unflatten", "new_zeros", "new_ones", "new_empty", "new_full")
"""Methods with sizes as arguments."""


@pattern(ast.Call, rules="number-argument")
def number_arguments(site: LintSite) -> Hit | None:
    """Match `range(t)`, `torch.arange(t)`, `torch.zeros((t, 3))`, `x.view(t, -1)`: a tensor is used as a number."""
    name = site.evaluator.names.full_name(site.call.func)
    receiver = site.method(*_SHAPED)
    shaped = receiver is not None and site.value(receiver).kind in (ValueKind.TENSOR, ValueKind.OUTPUT)
    takes = name == "range" or site.torch(site.call) in _SIZED or shaped
    if not takes or not any((v.scalar or name == "range") and site.waits_for(v) for v in _sizes(site)):
        return None
    shown = ast.unparse(site.call.func).rpartition(".")[2]
    return Hit(
        "number-argument",
        f"{shown} waits for a tensor that it uses as a number",
        "Keep sizes and bounds as Python ints from shapes or the configuration; for ranges compare with torch.arange "
        "of a fixed length.",
    )


def _sizes(site: LintSite) -> Iterator[Value]:
    """Yield the arguments given as sizes: each argument, and each element of a shape."""
    given = [*site.call.args, *(k.value for k in site.call.keywords if k.arg in ("size", "shape"))]
    for size in given:
        for part in size.elts if isinstance(size, ast.Tuple | ast.List) else [size]:
            value = site.value(part)
            element = part is not size and isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Slice)
            yield value.but(scalar=True) if element else value
