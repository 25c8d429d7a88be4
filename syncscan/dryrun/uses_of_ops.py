"""Tell the order of work which tensors each op reads, writes and makes, by the op's schema."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from syncscan.dryrun import tensor_memory
from syncscan.dryrun.order import WorkOrder
from syncscan.dryrun.tensor_memory import DEVICE, PINNED

torch: Any = importlib.import_module("torch")
_Tensor = torch.Tensor
_node: Any = torch._C._current_autograd_node
_EMPTY = ("aten::empty", "aten::new_empty", "aten::_efficientzerotensor")


class _Effect(NamedTuple):
    written: tuple[int, ...]
    """Places of the arguments that it writes to."""
    named: tuple[str, ...]
    """Names of those that are given by name."""
    view: bool
    """Whether it only returns a view."""


class UsesOfOps:
    """Reads what ops do to memory off their schemas.

    Args:
        order: where it is noted.
    """

    def __init__(self, order: WorkOrder) -> None:
        self._order = order
        self._effects: dict[Any, _Effect] = {}

    def of_device(self, func: Any, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Note an op that ran on the device.

        Args:
            func, name: the op.
            args, kwargs: its arguments.
            result: what it returned, marked with its place.
        """
        effect = self._effects.get(func) or self._effect_of(func)
        if effect.view:
            return
        if name == "aten::copy_" and self._copies(*args, **kwargs):
            return
        order = self._order
        writes = [t for at in effect.written if at < len(args) for t in _on_device(args[at])]
        writes += [t for key in effect.named if key in kwargs for t in _on_device(kwargs[key])]
        made = () if writes or name.startswith(_EMPTY) else [*_on_device(result)]
        reads = [*_on_device((*args, *kwargs.values()))] if order.several else ()
        order.device_work(reads, writes, made, ordered=order.several and _node() is not None)

    def _copies(self, target: Any, source: Any, non_blocking: bool = False) -> bool:
        """Note a copy between host and device; False where it is none."""
        to, of = tensor_memory.place_of(target), tensor_memory.place_of(source)
        order = self._order
        if (to == DEVICE) == (of == DEVICE):
            return False
        if of == DEVICE:
            if non_blocking and to == PINNED:
                order.copy_out(source, target)
            else:
                order.device_work(reads=(source,))
            return True
        if of != PINNED and order.open_copies:
            order.host_reads(source)
        order.device_work(writes=(target,))
        if non_blocking and of == PINNED:
            order.copy_in(source)
        return True

    def of_host(self, func: Any, args: Any, kwargs: Any) -> None:
        """Note an op that ran on the host, while copies between host and device may still run."""
        effect = self._effects.get(func) or self._effect_of(func)
        if effect.view:
            return
        written = {id(t) for at in effect.written if at < len(args) for t in _tensors(args[at])}
        written |= {id(t) for key in effect.named if key in kwargs for t in _tensors(kwargs[key])}
        for tensor in _tensors((*args, *kwargs.values())):
            if id(tensor) in written:
                self._order.host_writes(tensor)
            else:
                self._order.host_reads(tensor)

    def _effect_of(self, func: Any) -> _Effect:
        schema = getattr(func, "_schema", None)
        arguments = schema.arguments if schema is not None else ()
        written = [(at, a.name) for at, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
        returned = schema.returns if schema is not None else ()
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in returned)
        effect = _Effect(tuple(at for at, _ in written), tuple(name for _, name in written), view)
        self._effects[func] = effect
        return effect


def _tensors(value: Any) -> Iterator[Any]:
    """Return the tensors among some values that have a plain memory of their own."""
    if isinstance(value, _Tensor):
        if value.layout == torch.strided and not torch._C._functorch.is_functorch_wrapped_tensor(value):
            yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)


def _on_device(value: Any) -> Iterable[Any]:
    return (tensor for tensor in _tensors(value) if tensor_memory.place_of(tensor) == DEVICE)
