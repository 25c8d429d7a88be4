"""Tell the order of work which tensors each op reads, writes and makes, by the op's effect."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from syncscan.dryrun import tensor_memory
from syncscan.dryrun.device_kinds import is_direct, simulated
from syncscan.dryrun.known_ops import Effect
from syncscan.dryrun.tensor_memory import DEVICE, WITHOUT_STORAGE
from syncscan.dryrun.work_order import WorkOrder

torch: Any = importlib.import_module("torch")
_Tensor, _STRIDED = torch.Tensor, torch.strided
_node: Any = torch._C._current_autograd_node
_task: Any = torch._C._current_graph_task_id
_EMPTY = ("aten::empty", "aten::new_empty", "aten::_efficientzerotensor")


class UsesOfOps:
    """Reads what ops do to memory off their schemas.

    `stream_of` returns the stream that the forward op of a node of the backward pass ran on; None where unknown.
    """

    def __init__(self, order: WorkOrder, stream_of: Callable[[Any], int | None]) -> None:
        self._order, self._stream_of = order, stream_of

    def of_device(self, name: str, effect: Effect, args: Any, kwargs: Any, result: Any) -> None:
        if effect.view:
            return
        if name == "aten::copy_" and self._copies(*args, **kwargs):
            return
        order = self._order
        writes = _on_device(effect.writes(args, kwargs))
        allocated = [] if writes or name.startswith(_EMPTY) else _on_device((result,))
        reads = _on_device(effect.others(args, kwargs)) if effect.reads and order.notes_reads else []
        node = _node() if order.several else None
        if node is None:
            order.device_work(reads, writes, allocated)
        else:
            order.backward_work(reads, writes, allocated, _task(), self._stream_of(node))

    def _copies(self, target: Any, source: Any, non_blocking: bool = False) -> bool:
        """Note a copy between host and device; False for any other op."""
        to, of = tensor_memory.place_of(target), tensor_memory.place_of(source)
        order = self._order
        if (to == DEVICE) == (of == DEVICE):
            return False
        if of == DEVICE:
            late = non_blocking and simulated().is_late(to, non_blocking=True)
            if late and is_direct(source, target, outwards=True):
                order.copy_out(source, target)
            else:
                order.device_work(reads=(source,))
            return True
        late = simulated().is_late(of, non_blocking=non_blocking)
        if not late and order.open_copies:
            order.host_reads(source)
        order.device_work(writes=(target,))
        if late:
            self._copies_in(source, target, non_blocking)
        return True

    def _copies_in(self, source: Any, target: Any, non_blocking: bool) -> None:
        """Note what a copy reads in the host's memory: the copy itself, or the host where it gathers the values."""
        order = self._order
        if non_blocking and not is_direct(source, target, outwards=False):
            order.host_reads(source)
            return
        order.copy_in(source)
        if not non_blocking:
            order.host_waits(order.mark())

    def of_host(self, effect: Effect, args: Any, kwargs: Any) -> None:
        """Note an op that ran on the host, while copies between host and device may still run."""
        if effect.view:
            return
        written = {id(tensor) for tensor in tensors_in(effect.writes(args, kwargs))}
        for tensor in tensors_in((*args, *kwargs.values())):
            if id(tensor) in written:
                self._order.host_writes(tensor)
            elif effect.reads:
                self._order.host_reads(tensor)


def _on_device(values: Iterable[Any]) -> list[Any]:
    """Return the tensors among some values that have a plain memory of their own, on the device."""
    tensors = []
    for value in values:
        if isinstance(value, _Tensor):
            if value.layout is _STRIDED and _is_on_device(value):
                tensors.append(value)
        elif isinstance(value, list | tuple):
            tensors += _on_device(value)
    return tensors


def _is_on_device(tensor: Any) -> bool:
    try:
        return bool(tensor_memory.of_storage(tensor.untyped_storage()) == DEVICE)
    except WITHOUT_STORAGE:  # wrapped by a transform of `torch.func`
        return False


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield the tensors among some values that have a plain memory of their own."""
    if isinstance(value, _Tensor):
        if value.layout == torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors_in(one)
