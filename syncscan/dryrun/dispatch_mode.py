"""Intercept every op below autograd: note the device of its results, and report its waits to the session.

Imported where a session begins: it needs torch to be defined.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from syncscan.dryrun import tensor_memory, wait_table
from syncscan.dryrun.device_kinds import mark_of, simulated
from syncscan.dryrun.op_effects import KnownOp, UsesOfOps, depends_on_values, known_op
from syncscan.dryrun.recorder import DryRunSession, TorchCall, Unsaid
from syncscan.dryrun.recording import AUTOGRAD, DryWait
from syncscan.dryrun.tensor_memory import DEVICE, HOST

_Tensor = torch.Tensor
_place_of, _put = tensor_memory.place_of, tensor_memory.put

_NUMBERS = {"__bool__": ("aten::is_nonzero",), "is_nonzero": ("aten::is_nonzero",)}
"""Functions that read a number, and the op that is around `aten::item` there; others have none."""
_BARE = frozenset(
    "item __bool__ __int__ __float__ __index__ __complex__ __getitem__ __setitem__ tensor as_tensor new_tensor "
    "asarray is_nonzero tolist __format__ __repr__ __contains__".split()
)
"""Functions around which no op of their own name lies."""


class Ops(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Sees each op once, above the kernel and below everything that is composed of other ops."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Refuse the wrapper that keeps dynamo out: nothing is compiled in a dry run, and it would run at every op."""
        return False

    def __init__(self, session: DryRunSession) -> None:
        super().__init__()
        self._session = session
        self._node: Any = None
        self._uses = UsesOfOps(session.order, session.stream_of)
        self._known: dict[int, KnownOp] = {}
        """The identity of an op → what is known of it, which refers to the op: its hash is computed anew each time."""
        self._within = 0
        """How many ops that are written in Python run: autograd is left out in them."""
        self._answers: dict[Any, bool | None] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one op, and note what it means on a device."""
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            op = self._known.get(id(func)) or self._read_off(func)
            name = op.name
            if name.startswith("profiler::"):
                return self._scope(func, name, args, kwargs)
            session = self._session
            calls = session.calls
            call = calls[-1] if calls else _NO_CALL
            if call.moving:
                return func(*args, **kwargs)
            on_device, tensors = _inputs(args, kwargs)
            if session.order.open_copies and not on_device:
                self._uses.of_host(op.effect, args, kwargs)
            if call.waited and name in _VIEWS and not on_device:  # of a table on the host: it tells what was read
                session.recording.op(name, session.thread)
            if on_device and op.composed and (self._within or _in_inference(args)):
                with self:
                    return func.decompose(*args, **kwargs)
            if on_device and op.code is not None:
                with self._as_program():
                    return op.code(*args, **kwargs)
            if on_device:
                if name == "aten::_pack_padded_sequence" and _place_of(args[1]) == DEVICE:
                    raise RuntimeError(_LENGTHS)
                if name in _INDEXED and _is_host_table(args):
                    raise RuntimeError(_TABLE)
                self._waits(call, self._by_fake(func, op, args, kwargs) if op.foreign else op, args, kwargs)
                if call.name in _INDEXES and name in _INDEXED:
                    _move_lists(args[1], call)
            slow = name in _SLOW_IN_HALF and args[0].dtype == torch.float16
            result = in_float(func, args, kwargs) if slow else self._run(func, name, args, kwargs, on_device)
            if on_device:
                if name not in _KEEPS:
                    _put_all(result, DEVICE)
                if name in wait_table.ON_HOST:
                    _put(result[wait_table.ON_HOST[name]], HOST)
                self._uses.of_device(name, op.effect, args, kwargs, result)
            elif not tensors:
                place = self._factory_place(call, name)
                if place is not HOST:
                    _put_all(result, place)
                if place == DEVICE:
                    session.recording.op(name, session.thread)
                    self._uses.of_device(name, op.effect, args, kwargs, result)
            return result

    def _run(self, func: Any, name: str, args: Any, kwargs: Any, on_device: bool) -> Any:
        """Run an op; of one that only a GPU has what its shapes say, filled with zeros.

        An op that the CPU doesn't have for half precision or for integers alone runs in wider floats.
        """
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:  # NotImplementedError is one
            if on_device and (lacks := _LACKS_TYPE.search(str(error))):
                return in_float(func, args, kwargs, _WIDER if lacks["half"] else _FLOATS_OF)
            if not on_device or not _LACKS_KERNEL.search(str(error)):
                raise
            if self._answers.get(func) is not None:
                self._session.say(f"{name} can't run on a CPU: its results are zeros.")
            elif not self._known[id(func)].foreign:  # the others are counted as not understood already
                self._session.not_understood(f"{name}, which can't run on a CPU: its results are zeros")
            return _zeros(func, args, kwargs, error)

    def _read_off(self, func: Any) -> KnownOp:
        self._known[id(func)] = op = known_op(func)
        return op

    @contextlib.contextmanager
    def _as_program(self) -> Iterator[None]:
        """See what runs inside of an op as the program's own calls."""
        from syncscan.dryrun.device_functions import Functions  # which imports this module

        self._within += 1
        try:
            with torch._C._EnableTorchFunction(), Functions(self._session), self:
                yield
        finally:
            self._within -= 1

    def _by_fake(self, func: Any, op: KnownOp, args: Any, kwargs: Any) -> KnownOp:
        """Return an extension's op as its fake implementation has it; itself where that doesn't tell."""
        if op.dependent:
            return op._replace(foreign=False)
        if func not in self._answers:
            self._answers[func] = depends_on_values(func, args, kwargs)
        answer = self._answers[func]
        return op if answer is None else op._replace(foreign=False, dependent=answer)

    def _scope(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        if "enter" in name:
            self._session.open_scope(str(args[0]))
        elif "exit" in name:
            self._session.recording.close_scope(self._session.thread)
        return func(*args, **kwargs)

    def _waits(self, call: TorchCall, op: KnownOp, args: Any, kwargs: Any) -> None:
        session, name = self._session, op.name
        session.seen += 1
        if op.foreign:
            session.not_understood(name)
        node = torch._C._current_autograd_node()
        within = "" if node is None else node.name()
        op_waits: tuple[DryWait, ...] = ()
        if op.rule is not None or op.dependent:
            dispatched = wait_table.DispatchedOp(name, args, kwargs, within)
            op_waits = wait_table.waits_of(dispatched, op.rule)
        if within in wait_table.OF_NODES:
            op_waits = (*self._of_node(node, within), *op_waits)
        if not op_waits:
            session.recording.op(name, session.thread if node is None else AUTOGRAD)
            return
        if call.quiet or within.startswith(wait_table.QUIET):
            return
        call.waited = bool(call.name)
        value = mark_of(args[_READ[name]]) if name in _READ and node is None else ""
        session.wait(*(_around(call, replace(wait, value=value) if value else wait, args) for wait in op_waits))

    def _of_node(self, node: Any, name: str) -> tuple[DryWait, ...]:
        """Return what a node of the backward pass waits for itself, once: at its first op."""
        if node is self._node:
            return ()
        self._node = node
        return tuple(wait_table.OF_NODES[name](node))

    def _factory_place(self, call: TorchCall, name: str) -> str | None:
        """Return where a factory's tensor lies: where the call says, or beside the tensor that it was given."""
        if call.place is not Unsaid:
            return call.place  # type: ignore[return-value]
        if call.name in _CONSTRUCTORS and name != "aten::arange":  # by which vmap indexes its own axis
            return HOST
        on_device, _ = _inputs(call.args, call.kwargs)
        return DEVICE if on_device else HOST


_LENGTHS = "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor"
"""Text of a GPU's error for lengths that lie there (PackedSequence.cpp)."""
_TABLE = "indices should be either on cpu or on the same device as the indexed tensor (cpu)"
"""Text of a GPU's error for a tensor of the host that a vector or mask on the device indexes; a number is read."""
_READ = {"aten::_local_scalar_dense": 0, "aten::copy_": 1}
"""Op → the place among its arguments of the tensor that it brings to the host."""
_NO_CALL = TorchCall("", place=Unsaid)
_INDEXES, _INDEXED = ("__getitem__", "__setitem__"), ("aten::index", "aten::index_put_")
"""Methods that make tensors of the lists in `x[[0, 2], 1]`, and the ops that they call with them."""
_VIEWS = frozenset({"aten::select", "aten::slice"})
"""Ops of an indexing whose index or bound was read from the device."""
_KEEPS = frozenset({"aten::copy_", "aten::_local_scalar_dense", "aten::equal"})
"""Ops whose result lies where it lay, or is no tensor."""
_CONSTRUCTORS = frozenset("tensor as_tensor new_tensor asarray __setitem__ __getitem__ from_numpy frombuffer".split())
"""Functions that make tensors of Python's values on the host, whatever else they are given."""


_SLOW_IN_HALF = frozenset({"aten::convolution", "aten::convolution_backward"})
"""Ops that run in float32 for float16: 128 channels of 64 x 64 took 4.0 s in float16, 0.08 s in float32 (two cores of a
CPU without float16 of its own, torch 2.13)."""


_LACKS_KERNEL = re.compile("Could not run|not implemented on the CPU")
_LACKS_TYPE = re.compile(r"not implemented for '((?P<half>Half|BFloat16|ComplexHalf)|Byte|Char|Short|Int|Long)'")
"""Pattern of torch's error for an op without a kernel for this type: rrelu, multi_margin_loss and avg_pool3d of float16
among others, and histc of integers, which a GPU has (torch's op database, 2.13)."""
_WIDER = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.complex32: torch.complex64}
_FLOATS_OF = dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.float64)


def in_float(func: Any, args: Any, kwargs: Any, wider: dict[Any, Any] = _WIDER) -> Any:
    """Run an op or a function in wider types, its results in those asked for: no less exact than the op itself.

    `wider` leads from a type to the one that its tensors have meanwhile.
    """
    tree = torch.utils._pytree
    leaves, spec = tree.tree_flatten((args, kwargs))
    narrow = [leaf for leaf in leaves if isinstance(leaf, _Tensor) and leaf.dtype in wider]
    wide = {id(tensor): tensor.to(wider[tensor.dtype]) for tensor in narrow}
    wide_args, wide_kwargs = tree.tree_unflatten([wide.get(id(leaf), leaf) for leaf in leaves], spec)
    result = func(*wide_args, **wide_kwargs)
    written = {id(wide[id(tensor)]): tensor for tensor in narrow} if _writes(func) else {}
    for tensor in written.values():
        tensor.copy_(wide[id(tensor)])
    back = _narrower(narrow[0].dtype if narrow else torch.float16)
    return tree.tree_map(lambda value: written.get(id(value), _cast(value, back)), result)


def _narrower(dtype: Any) -> dict[Any, Any]:
    """Return type of a result → the one that an op of tensors of `dtype` gives."""
    if dtype in _FLOATS_OF:
        return {torch.float64: dtype}
    return {torch.float32: torch.float16 if dtype == torch.complex32 else dtype, torch.complex64: torch.complex32}


def _writes(func: Any) -> bool:
    """Return whether an op writes to what it is given, as `add_` does, and rrelu to its noise."""
    return bool(getattr(getattr(func, "_schema", None), "is_mutable", False))


def _cast(value: Any, types: dict[Any, Any]) -> Any:
    """Return a tensor of one of these types in the other; anything else as it is."""
    return value.to(types.get(value.dtype, value.dtype)) if isinstance(value, _Tensor) else value


def _zeros(func: Any, args: Any, kwargs: Any, error: Exception) -> Any:
    """Return zeros shaped as an op's results; raise its error where the meta device doesn't know the shapes."""
    tree = torch.utils._pytree
    try:
        meta = func(*tree.tree_map(_meta, args), **tree.tree_map(_meta, kwargs))
    except Exception:
        raise error from None
    return tree.tree_map(lambda x: torch.zeros_like(x, device="cpu") if isinstance(x, _Tensor) else x, meta)


def _meta(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("meta")
    return value.to("meta") if isinstance(value, _Tensor) else value


def _around(call: TorchCall, wait: DryWait, args: Any) -> DryWait:
    """Return a wait below the op that the program called, where that isn't the op that waits."""
    outer = _NUMBERS.get(call.name, ())
    if call.name in _BARE or not call.name:
        return wait.inside(*outer) if wait.ops[:1] == ("aten::item",) else wait
    called = f"aten::{call.name}"
    if call.kwargs.get("as_tuple") or (call.name == "where" and len(call.args) == 1):
        wait = wait.inside("aten::nonzero_numpy")
        called = wait.ops[0] if call.name == "nonzero" else called
    if called in wait.ops or not _is_op(call.name) or _is_among(args, call):
        return wait
    return wait.inside(called)


@functools.cache
def _is_op(name: str) -> bool:
    return not name.startswith("__") and hasattr(torch.ops.aten, name)


def _move_lists(indices: Any, call: TorchCall) -> None:
    """Move Python's index lists to the device, where they stay for the backward pass once they are copied.

    A tensor of the program's own stays where it is, and is copied again (H200, torch 2.11).
    """
    own = [given for given in torch.utils._pytree.tree_leaves(call.args) if isinstance(given, _Tensor)]
    for index in indices:
        of_list = isinstance(index, _Tensor) and not any(tensor_memory.same_memory(index, given) for given in own)
        if of_list and _place_of(index) is HOST:
            _put(index, DEVICE)


def _is_host_table(args: Any) -> bool:
    """Return whether the first argument lies on the host, and one of the indices in the second on the device."""
    return _place_of(args[0]) != DEVICE and any(i is not None and _place_of(i) == DEVICE for i in args[1])


def _is_among(args: Any, call: TorchCall) -> bool:
    """Return whether the read value is an argument of the call, which becomes a number before the op begins."""
    return bool(args) and any(args[0] is given for given in (*call.args, *call.kwargs.values()))


def _inputs(args: Any, kwargs: Any) -> tuple[bool, bool]:
    """Return whether one of the tensors among these lies on the device, and whether there are tensors at all."""
    tensors = False
    for value in args:
        if isinstance(value, _Tensor):
            tensors = True
            if _place_of(value) == DEVICE:
                return True, True
        elif isinstance(value, list | tuple) and value:
            on_device, any_tensor = _inputs(value, None)
            tensors = tensors or any_tensor
            if on_device:
                return True, True
    return _inputs(kwargs.values(), None) if kwargs and not tensors else (False, tensors)


def _in_inference(args: Any) -> bool:
    """Return whether autograd is left out, which takes composed ops apart elsewhere: for the mode, or for a tensor."""
    tensors = (value for value in args if isinstance(value, _Tensor))
    return bool(torch.is_inference_mode_enabled()) or any(tensor.is_inference() for tensor in tensors)


def _put_all(result: Any, place: str | None) -> None:
    if isinstance(result, _Tensor):
        if _place_of(result) != place:
            if place == DEVICE:
                simulated().refuse(result)
            _put(result, place)
    elif isinstance(result, list | tuple):
        for one in result:
            _put_all(one, place)
