"""Facts of an op that torch dispatches (its schema, the table of waits, `torch.library`), and what it does to memory.

A custom op that is written in Python runs as the program's code, so that the ops that it calls are seen. Of any other
op of an extension its fake implementation tells whether the size of a result depends on values of the device, which the
host has to wait for; where it doesn't, the op launches kernels and returns. An op without one is unknown.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import torch

from syncscan.dryrun import tensor_memory, wait_table
from syncscan.dryrun.device_kinds import is_direct, simulated
from syncscan.dryrun.tensor_memory import DEVICE, WITHOUT_STORAGE
from syncscan.dryrun.work_order import WorkOrder

_Tensor = torch.Tensor


class Effect(NamedTuple):
    """The arguments that an op writes to."""

    written: tuple[int, ...]
    """Places of the arguments that it writes to."""
    named: tuple[str, ...]
    """Names of those that are given by name."""
    view: bool
    """Whether it only returns a view."""
    reads: bool = True
    """Whether it reads values; `ones_like` and the like ask for size and type alone."""

    def writes(self, args: Any, kwargs: Any) -> Sequence[Any]:
        """Return the arguments that it writes to: tensors and lists of tensors."""
        if not self.written:
            return ()
        positional = [args[at] for at in self.written if at < len(args)]
        return [*positional, *(kwargs[key] for key in self.named if key in kwargs)]

    def others(self, args: Any, kwargs: Any) -> Sequence[Any]:
        if not self.written:
            return (*args, *kwargs.values())
        positional = [value for at, value in enumerate(args) if at not in self.written]
        return [*positional, *(value for key, value in kwargs.items() if key not in self.named)]


def effect_of(func: Any) -> Effect:
    """Return the effect of an op by its schema; of one without a schema that of an op that only reads."""
    schema = getattr(func, "_schema", None)
    arguments = schema.arguments if schema is not None else ()
    written = [(at, a.name) for at, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write]
    returned = schema.returns if schema is not None else ()
    view = any(r.alias_info is not None and not r.alias_info.is_write for r in returned)
    about = schema is not None and (schema.name.endswith("_like") or schema.name.startswith("aten::new_"))
    return Effect(tuple(at for at, _ in written), tuple(name for _, name in written), view, not about)


class KnownOp(NamedTuple):
    """An op, and what is to be done at each of its calls."""

    func: Any
    name: str
    overload: str
    """Its name with the overload, where it isn't the default one."""
    dependent: bool
    """Whether the size of its result, or its result itself, depends on values of the device."""
    composed: bool
    """Whether it is nothing but calls of others on a device: below autograd those alone are seen."""
    effect: Effect
    rule: wait_table.Rule | None = None
    """Its row of the table of waits."""
    code: Callable[..., Any] | None = None
    """Its Python code, if it is written in Python or calls functions: the ops in there are seen instead of it."""
    foreign: bool = False
    """Whether it is an extension's, of which `wait_table` knows nothing."""


_DEPENDENT = ("Tag.data_dependent_output", "Tag.dynamic_output_shape", "data_dependent_output", "dynamic_output_shape")
"""Torch's tags of ops whose result, or the result's size, depends on values."""


def known_op(func: Any) -> KnownOp:
    if not hasattr(func, "_schema"):
        name = f"higher_order::{func.name()}"
        return KnownOp(func, name, name, dependent=False, composed=False, effect=effect_of(func), code=_calls_of(func))
    name, overload, has = func._schema.name, func._overloadname, torch._C._dispatch_has_kernel_for_dispatch_key
    foreign = name.partition("::")[0] not in wait_table.KNOWN
    full = name if overload in ("default", "") else f"{name}.{overload}"
    return KnownOp(
        func,
        name,
        full,
        dependent=any(str(tag) in _DEPENDENT for tag in func.tags),
        composed=has(func.name(), "CompositeImplicitAutograd") and not has(func.name(), "CUDA"),
        effect=effect_of(func),
        rule=wait_table.rule_of(full),
        code=_python_code(func) if foreign else None,
        foreign=foreign,
    )


def _calls_of(func: Any) -> Callable[..., Any] | None:
    """Return the Python function by which an op runs the functions that it is given; None where it has another form.

    Some of torch's own refuse to run under a mode, which is the only thing that they ask for it.
    """
    code = func.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
    if not isinstance(code, FunctionType):
        return None
    names = {**code.__globals__, "_get_current_dispatch_mode": lambda: None}
    return FunctionType(code.__code__, names, code.__name__, code.__defaults__, code.__closure__)


def _python_code(func: Any) -> Callable[..., Any] | None:
    """Return the Python function that a custom op runs on CUDA; None where it isn't written in Python."""
    definitions = getattr(_part("custom_ops"), "OPDEFS", {})
    functions = getattr(definitions.get(func._schema.name), "_backend_fns", {})
    code: Callable[..., Any] | None = functions.get("cuda", functions.get(None))
    return code


def depends_on_values(func: Any, args: Any, kwargs: Any) -> bool | None:
    """Return whether the size of a result depends on values, by the op's fake implementation; None without one."""
    if not _has_fake(func):
        return None
    fakes = importlib.import_module("torch._subclasses.fake_tensor")
    shapes = importlib.import_module("torch.fx.experimental.symbolic_shapes")
    mode = fakes.FakeTensorMode(shape_env=shapes.ShapeEnv())
    tree = torch.utils._pytree
    try:
        given = tree.tree_map(
            lambda value: mode.from_tensor(value, static_shapes=True) if isinstance(value, _Tensor) else value,
            (args, kwargs),
        )
        with mode:
            results = tree.tree_leaves(func(*given[0], **given[1]))
    except (fakes.DynamicOutputShapeException, fakes.DataDependentOutputException):
        return True
    except Exception:  # whatever its author didn't foresee
        return None
    return any(not isinstance(size, int) for value in results for size in getattr(value, "shape", ()))


def _has_fake(func: Any) -> bool:
    name = func._schema.name
    registry = getattr(_part("simple_registry"), "singleton", None)
    entry = registry.find(name) if registry is not None else None
    by_python = getattr(getattr(entry, "fake_impl", None) or getattr(entry, "abstract_impl", None), "kernel", None)
    return by_python is not None or bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "Meta"))


def _part(name: str) -> Any:
    """Return a module of torch's registry of custom ops; None in a torch without it."""
    try:
        return importlib.import_module(f"torch._library.{name}")
    except ImportError:
        return None


_STRIDED = torch.strided
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
