"""Tabulate what the host waits for on CUDA in an op with its arguments: everything that C++ does out of sight.

Each row's chain is the one that the recordings in `sample_traces/rules` and the catalogue show, so that the rules that
name the waits of traces name these too. What isn't in the table waits for nothing, unless torch tags the op as one
whose result the host has to see (`data_dependent_output`, `dynamic_output_shape`).

Facts: torch 2.13 sources and recordings of torch 2.11 on an H200, whose measured truth the tests hold the table to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscan.dryrun import tensor_memory
from syncscan.dryrun.device_kinds import STAGED_BYTES, is_direct, simulated
from syncscan.dryrun.recording import DryWait

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LONG_ROW = 2048
"""`mode` sorts rows up to this length in one kernel, longer ones with Thrust (TensorModeKernel.cu)."""

_READ = ("aten::item", "aten::_local_scalar_dense")
_TO = ("aten::to", "aten::_to_copy", "aten::copy_")


@dataclass(frozen=True, slots=True)
class DispatchedOp:
    """An op as torch dispatches it, before it runs, with torch's modes off: its name is without the overload."""

    name: str
    args: Sequence[Any]
    kwargs: dict[str, Any]
    node: str = ""
    """The node of the backward pass that calls it; empty outside of backward."""

    def arg(self, at: int, name: str, otherwise: Any = None) -> Any:
        return self.args[at] if len(self.args) > at else self.kwargs.get(name, otherwise)


def read() -> DryWait:
    """Return a copy of one number into pinned memory that is awaited."""
    return DryWait((), copy="Memcpy DtoH (Device -> Pinned)", size=8)


def item(*outer: str) -> DryWait:
    """Return a read of one number by `item`, below these ops."""
    return DryWait((*outer, *_READ), copy="Memcpy DtoH (Device -> Pinned)", size=4)


def to_host(*ops: str, size: int = 8, pinned: bool = False) -> DryWait:
    return DryWait(ops or _TO, copy=f"Memcpy DtoH (Device -> {'Pinned' if pinned else 'Pageable'})", size=size)


def to_device(*ops: str, size: int = 8, pinned: bool = False) -> DryWait:
    return DryWait(ops or _TO, copy=f"Memcpy HtoD ({'Pinned' if pinned else 'Pageable'} -> Device)", size=size)


def synchronize(*ops: str, call: str = "cudaStreamSynchronize") -> DryWait:
    """Return a synchronize without a copy: Thrust's, MAGMA's, or the program's own."""
    return DryWait(ops, calls=(call,))


def copy(source: Any, target: Any, *ops: str, non_blocking: bool, direct: bool = True) -> Iterable[DryWait]:
    """Yield what a copy between host and device waits for; `source` and `target` are places, the first with its tensor.

    `direct` says that it would read or write the host tensor's own memory (`copies.is_direct`).
    """
    (origin, tensor), goal = source, target
    size = tensor.numel() * tensor.element_size()
    pinned = tensor_memory.PINNED in (origin, goal) and (direct or not non_blocking)
    if not size or (origin == tensor_memory.DEVICE) == (goal == tensor_memory.DEVICE):
        return
    host = origin if goal == tensor_memory.DEVICE else goal
    late = direct and simulated().is_late(host, non_blocking=non_blocking)
    if goal == tensor_memory.DEVICE:
        if not non_blocking or (not late and size > STAGED_BYTES):
            yield to_device(*ops, size=size, pinned=pinned)
    elif not non_blocking:
        yield to_host(*ops, size=size, pinned=pinned)
    elif not late:  # no synchronize follows, and the call still waits
        yield DryWait(ops, ("cudaMemcpyAsync",), "Memcpy DtoH (Device -> Pageable)", size)


def _on_device(tensor: Any) -> bool:
    import torch

    return isinstance(tensor, torch.Tensor) and tensor_memory.place_of(tensor) == tensor_memory.DEVICE


def _is_mask(tensor: Any) -> bool:
    import torch

    return tensor is not None and tensor.dtype in (torch.bool, torch.uint8)


def _is_copied(given: Any, op: DispatchedOp) -> bool:
    """Return whether an index or a value is on the host and the indexed tensor isn't."""
    return not _on_device(given) and _on_device(op.args[0])


def _index(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the count of a device mask, and the copy of a host index; a host mask doesn't wait (since 2.9)."""
    outer = "aten::index"
    for index in op.args[1]:
        if index is None:
            continue
        if _is_mask(index):
            if _on_device(index):
                yield read().inside(outer, "aten::nonzero")
        elif _is_copied(index, op):
            yield to_device(outer, *_TO, size=_bytes(index))


def _index_put(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the waits of reading by index, except that one mask with a host number fills; other numbers are copied."""
    outer = ("aten::index_put_", "aten::_index_put_impl_")
    indices, value = [index for index in op.args[1] if index is not None], op.args[2]
    number = value.numel() == 1 and not _on_device(value)
    if number and len(indices) == 1 and _is_mask(indices[0]):
        return
    for index in indices:
        if _is_mask(index):
            if _on_device(index):
                yield read().inside(*outer, "aten::nonzero")
        elif _is_copied(index, op):
            yield to_device(*outer, *_TO, size=_bytes(index))
    if _is_copied(value, op) and not op.node.startswith("IndexPutBackward"):  # it makes its own on the device
        yield to_device(*outer, *_TO, size=_bytes(value))


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _copy(op: DispatchedOp) -> Iterable[DryWait]:
    target, source = op.args[0], op.args[1]
    origin, goal = tensor_memory.place_of(source), tensor_memory.place_of(target)
    direct = is_direct(source, target, outwards=origin == tensor_memory.DEVICE)
    non_blocking = bool(op.arg(2, "non_blocking", False))
    return copy((origin, source), goal, "aten::copy_", non_blocking=non_blocking, direct=direct)


def _equal(op: DispatchedOp) -> Iterable[DryWait]:
    a, b = op.args[0], op.args[1]
    if a.shape == b.shape and a.numel() and not tensor_memory.same_memory(a, b):
        yield item("aten::equal")


def _fill(op: DispatchedOp) -> Iterable[DryWait]:
    if _on_device(op.args[1]) and not _on_device(op.args[0]):
        yield item("aten::fill_")


def _unique(op: DispatchedOp) -> Iterable[DryWait]:
    if not op.args[0].numel():  # nothing is launched (UniqueCub.cu)
        return
    if _is_mask(op.args[0]):
        yield to_host(op.name)
    else:
        yield item(op.name)


def _bincount(op: DispatchedOp) -> Iterable[DryWait]:
    import torch

    if op.args[0].dtype != torch.uint8:
        yield to_host(op.name, *_TO)
    yield item(op.name)


def _histc(op: DispatchedOp) -> Iterable[DryWait]:
    if op.arg(2, "min", 0) == op.arg(3, "max", 0):
        yield from (to_host(op.name, *_TO), to_host(op.name, *_TO))


def _repeat_interleave(op: DispatchedOp) -> Iterable[DryWait]:
    if op.arg(1, "output_size") is None:
        yield from (item("aten::repeat_interleave", "aten::repeat_interleave") for _ in range(2))


def _segment_reduce(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the check of lengths; offsets aren't checked (SegmentReduce.cpp)."""
    if op.kwargs.get("lengths") is not None and not op.kwargs.get("unsafe", False):
        yield from (item("aten::segment_reduce") for _ in range(2))


def _ctc_lengths(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the read of lengths on the device, and the copies of lengths and of the targets' offsets to it."""
    yield from (to_host("aten::ctc_loss", *_TO) for lengths in op.args[2:4] if _on_device(lengths))
    yield from (to_device("aten::ctc_loss", "aten::_ctc_loss", *_TO) for _ in range(3))


def _mode(op: DispatchedOp) -> Iterable[DryWait]:
    tensor, dim = op.args[0], op.arg(1, "dim", -1)
    if tensor.dim() and tensor.shape[dim] > LONG_ROW:
        yield synchronize("aten::mode")


def _coalesce(op: DispatchedOp) -> Iterable[DryWait]:
    if op.args[0]._nnz() >= 2:
        yield synchronize("aten::coalesce", "aten::_coalesce")


def _number_arguments(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the read of a number that is a tensor on the device."""
    yield from (item(op.name) for value in (*op.args, *op.kwargs.values()) if _on_device(value))


def _to_compressed(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the count of a dense tensor's values; a sparse one has its indices already (SparseCsrTensor.cpp).

    Between rows and columns the count of the values is copied to the device (`sparse_compressed_to_flipped`).
    """
    import torch

    given = op.args[0]
    outer = (op.name.replace("::_", "::"), op.name)
    of_rows, of_columns = (torch.sparse_csr, torch.sparse_bsr), (torch.sparse_csc, torch.sparse_bsc)
    opposite = of_columns if op.name.endswith("r") else of_rows
    if given.layout == torch.strided:
        yield read().inside(*outer, "aten::nonzero")
    elif given.layout == torch.sparse_coo and not given.is_coalesced():
        yield synchronize(*outer, "aten::_coalesce")
    elif given.layout in opposite:
        yield to_device(*outer, *_TO)


def _grouped_mm(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the copy of the groups' ends to the host, by which others than bfloat16 are multiplied one by one.

    Source: torch 2.11 to 2.13, GroupedBlas.cpp and GroupedMMUtils.h; seen on an H200.
    """
    import torch

    bfloat16 = torch.bfloat16
    ends = op.arg(2, "offs")
    if ends is not None and not all(matrix.dtype == bfloat16 for matrix in op.args[:2]):
        yield to_host("aten::_grouped_mm", *_TO, size=_bytes(ends))


def _unbind(op: DispatchedOp) -> Iterable[DryWait]:
    """Yield the read of a nested tensor's lengths, whatever its layout."""
    if op.args[0].is_nested:
        yield to_host()


Rule = Callable[[DispatchedOp], Iterable[DryWait]]
"""Yields what an op waits for."""

_KINDS: dict[str, Callable[..., DryWait]] = {
    "item": item,
    "read": lambda *ops: read().inside(*ops),
    "to_host": lambda *ops: to_host(*ops, *_TO),
    "to_device": lambda *ops: to_device(*ops, *_TO),
    "synchronize": synchronize,
    "device_synchronize": lambda *ops: synchronize(*ops, call="cudaDeviceSynchronize"),
}
_ONLY: dict[str, Callable[[Any], bool]] = {
    "": lambda tensor: True,
    "elements": lambda tensor: bool(tensor.numel()),
    "sparse": lambda tensor: bool(tensor.is_sparse),
    "nested": lambda tensor: bool(tensor.is_nested) and str(tensor.layout) == "torch.strided",
}


def _of_row(
    name: str,
    kind: str,
    ops: Sequence[str] | None = None,
    times: int = 1,
    only: str = "",
    argument: int | None = None,
) -> Rule:
    """Return the rule of a row of `waits.toml`."""
    waits = (_KINDS[kind](*([name.partition(".")[0]] if ops is None else ops)),) * times

    def rule(op: DispatchedOp) -> Iterable[DryWait]:
        if argument is not None:
            return waits if len(op.args) > argument and _on_device(op.args[argument]) else ()
        return waits if _ONLY[only](op.args[0]) else ()

    return rule


_ROWS = tomllib.loads((Path(__file__).parent / "waits.toml").read_text(encoding="utf-8"))["waits"]

WAITS: dict[str, Rule] = {
    **{name: _of_row(name, **row) for name, row in _ROWS.items()},
    # numbers
    "aten::equal": _equal,
    "aten::fill_.Tensor": _fill,
    "aten::linspace": _number_arguments,
    "aten::logspace": _number_arguments,
    # copies
    "aten::copy_": _copy,
    # shapes
    "aten::index.Tensor": _index,
    "aten::_unsafe_index.Tensor": _index,
    "aten::index_put": _index_put,
    "aten::index_put_": _index_put,
    "aten::_index_put_impl_": _index_put,
    "aten::_unsafe_index_put": _index_put,
    "aten::_unique": _unique,
    "aten::_unique2": _unique,
    "aten::unique_consecutive": _unique,
    "aten::bincount": _bincount,
    "aten::histc": _histc,
    "aten::repeat_interleave.Tensor": _repeat_interleave,
    "aten::segment_reduce": _segment_reduce,
    "aten::mode": _mode,
    "aten::_ctc_loss.Tensor": _ctc_lengths,
    # sparse
    "aten::_coalesce": _coalesce,
    "aten::_to_sparse_csr": _to_compressed,
    "aten::_to_sparse_csc": _to_compressed,
    "aten::_to_sparse_bsr": _to_compressed,
    "aten::_to_sparse_bsc": _to_compressed,
    "aten::_grouped_mm": _grouped_mm,
    "aten::unbind": _unbind,
}
"""Op, with the overload where needed, → its waits if one of its tensors is on the device."""


def _one_hot(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterable[DryWait]:
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes == -1:
        yield item("aten::one_hot")


def _sparse_tensor(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterable[DryWait]:
    """Yield the read of the greatest indices without a given size, or if invariants are checked."""
    import torch

    invariants = torch.sparse.check_sparse_tensor_invariants
    checked = kwargs.get("check_invariants")
    sized = len(args) > 2 or kwargs.get("size") is not None
    if not sized or (invariants.is_enabled() if checked is None else checked):
        yield from (item("aten::sparse_coo_tensor") for _ in range(2))


def _nothing(args: Sequence[Any], kwargs: dict[str, Any]) -> Iterable[DryWait]:
    return ()


COMPOSED: dict[str, Callable[[Sequence[Any], dict[str, Any]], Iterable[DryWait]]] = {
    "one_hot": _one_hot,
    "sparse_coo_tensor": _sparse_tensor,
    "quantile": _nothing,
    "nanquantile": _nothing,
    "_assert_async": _nothing,
}
"""Functions that call other ops on a CPU than on a GPU, where these checks don't exist or run on the device
(Onehot.cpp, Sorting.cpp): their waits there, whatever happens inside them here."""

ON_HOST = {"aten::_pack_padded_sequence": 1, "_pad_packed_sequence": 1}
"""Op or function → the result that is on the host whatever its arguments: sizes of batches, lengths."""

KNOWN = frozenset(
    "aten prim prims profiler torchvision quantized c10d _c10d_functional inductor mkldnn mkl rngprims sparse "
    "debugprims higher_order nested_tensor nvprims static_runtime symm_mem".split()
)
"""Namespaces of ops whose CUDA code this table covers; others belong to extensions."""


def rule_of(name: str) -> Rule | None:
    return WAITS.get(name) or WAITS.get(name.partition(".")[0])


def waits_of(op: DispatchedOp, rule: Rule | None) -> tuple[DryWait, ...]:
    """Return what the host waits for in an op with a tensor on the device as argument."""
    return (read().inside(op.name),) if rule is None else tuple(rule(op))


QUIET = ("MaxBackward", "MinBackward", "MedianBackward", "NanmedianBackward", "AmaxBackward", "AminBackward")
"""Nodes of the backward pass that look at values on a CPU but not on a GPU (FunctionsManual.cpp)."""


def _of_factors(wait: DryWait, least: int) -> Callable[[Any], Iterable[DryWait]]:
    """Yield the waits of a product's gradient: the number of zero factors, except for a single factor."""
    return lambda node: (wait,) if node._saved_self.numel() >= least and node._saved_self.dim() else ()


def _fill_reads(node: Any) -> Iterable[DryWait]:
    """Yield the read for the gradient of a fill's value, if that is needed."""
    if node.next_functions[1][0] is not None:
        yield read().inside("aten::masked_select", "aten::nonzero")


OF_NODES: dict[str, Callable[[Any], Iterable[DryWait]]] = {
    "MaskedFillBackward1": _fill_reads,
    "ProdBackward0": _of_factors(read().inside("aten::nonzero"), 0),
    "ProdBackward1": _of_factors(item(), 0),
    "CumprodBackward0": _of_factors(item(), 2),
}
"""Nodes of the backward pass that look at values on a GPU, but not while a dispatch mode is on, as here
(FunctionsManual.cpp, `isTensorSubclassLike`; `cumprod_backward` in ReduceOps.cpp)."""
