"""Infer what an expression is from what is known of its names: a device tensor, a host value and so on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable

from syncscan.lint import torch_names as known
from syncscan.lint.imported_names import FileNames, argument, constant, is_true, key
from syncscan.lint.made_modules import makes_module
from syncscan.lint.values import BATCH, CPU, HOST, MODULE, OUTPUT, TENSOR, UNKNOWN, Value, ValueKind, joined

Environment = dict[str, Value]


class Evaluator:
    """Evaluates the expressions of one function.

    Args:
        names: the names of the file.
        environment: what names, attributes and items are; whoever binds one calls `bind`.
        hints: names that the function uses as only a tensor can be used.
        is_module: whether an attribute of `self` that is called is taken for a submodule.
    """

    def __init__(
        self,
        names: FileNames,
        environment: Environment,
        hints: Collection[str] = (),
        is_module: Callable[[str], bool] | None = None,
    ) -> None:
        self.names = names
        self.environment = environment
        self._hints = hints
        self._is_module = is_module or (lambda name: False)
        self._known: dict[ast.expr, Value] = {}
        self._below: dict[str, set[str]] = {}
        """Name → what was bound of its attributes and items."""
        for name in [name for name in environment if "." in name or "[" in name]:
            self._below.setdefault(name.partition(".")[0].partition("[")[0], set()).add(name)
        self.assigned_value: ast.expr | None = None
        """The assigned expression, while a target is looked at; None otherwise."""

    def bind(self, name: str, value: Value) -> None:
        """Set what a name is from here on; what was known of its attributes and items is forgotten."""
        for inner in self._below.pop(name, ()):
            self.environment.pop(inner, None)
        self.environment[name] = value
        for end, sign in enumerate(name):
            if sign in ".[":
                self._below.setdefault(name[:end], set()).add(name)
        self._known.clear()

    def forget(self, target: ast.expr) -> None:
        """Mark a name that is None for now as unknown from here on; an attribute is what its owner makes it."""
        written = key(target)
        self.bind(written, UNKNOWN)
        if not isinstance(target, ast.Name):
            del self.environment[written]

    def replace(self, environment: Environment) -> Environment:
        """Go on in another environment; the one until now."""
        before, self.environment = self.environment, environment
        self._known.clear()
        return before

    def value(self, node: ast.expr | None) -> Value:
        """Return the value that an expression is taken for; `HOST` if there is no expression."""
        if node is None:
            return HOST
        if node not in self._known:
            self._known[node] = self._value(node)
        return self._known[node]

    def element(self, node: ast.expr) -> Value:
        """Return the value of the elements that iterating over an expression yields."""
        if isinstance(node, ast.Call) and (passed := self._iterated(node)) is not None:
            return passed
        value = self.value(node)
        if value.kind is ValueKind.LOADER:
            return Value(ValueKind.BATCH, pinned=value.pinned, line=value.line)
        if value.kind is ValueKind.OUTPUT:
            return UNKNOWN
        return value.but(scalar=False, listed=False)

    def _iterated(self, call: ast.Call) -> Value | None:
        """Return the elements of a wrapped iterable: `enumerate(x)`, `tqdm(x)`, `x.items()`; None for others."""
        name = self.names.of(call.func).rpartition(".")[2]
        if name in ("enumerate", "tqdm", "trange", "iter", "reversed", "islice", "track", "auto") and call.args:
            return self.element(call.args[0])
        if name == "zip":
            return UNKNOWN if not call.args else self._alike([self.element(a) for a in call.args])
        if name == "range":
            return HOST
        if name == "parameters":
            return TENSOR
        if name == "named_parameters":
            return TENSOR
        if isinstance(call.func, ast.Attribute) and call.args and self.value(call.args[0]).kind is ValueKind.LOADER:
            return self.element(call.args[0])  # whatever logs or shows progress around a loader gives its batches
        if isinstance(call.func, ast.Attribute) and name in ("items", "values") and not call.args:
            inner = self.value(call.func.value)
            return (
                inner if inner.kind in (ValueKind.BATCH, ValueKind.TENSOR, ValueKind.CPU, ValueKind.HOST) else UNKNOWN
            )
        return None

    @staticmethod
    def _alike(values: list[Value]) -> Value:
        return values[0] if values and all(v == values[0] for v in values) else UNKNOWN

    def _value(self, node: ast.expr) -> Value:
        method = getattr(self, f"_of_{type(node).__name__}", None)
        return method(node) if method else UNKNOWN

    def _of_Constant(self, node: ast.Constant) -> Value:
        return HOST

    def _of_JoinedStr(self, node: ast.JoinedStr) -> Value:
        return HOST

    def _of_Name(self, node: ast.Name) -> Value:
        value = self.environment.get(node.id, UNKNOWN)
        if value.kind is ValueKind.UNKNOWN and node.id in self._hints:
            return value.but(kind=ValueKind.TENSOR)
        if value.kind is ValueKind.UNKNOWN and known.LOADER_NAME.search(node.id):
            return Value(ValueKind.LOADER)
        return value

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        written = key(node)
        if written in self.environment:
            return self.environment[written]
        if written in self._hints:
            return TENSOR
        inner = self.value(node.value)
        if node.attr in known.HOST_ATTRIBUTES:
            return HOST
        if inner.kind in (ValueKind.TENSOR, ValueKind.CPU) and node.attr in known.SAME_ATTRIBUTES:
            return inner
        if inner.kind is ValueKind.OUTPUT and node.attr in known.TENSOR_ATTRIBUTES:
            return TENSOR
        if inner.kind is ValueKind.BATCH:
            return inner
        return Value(ValueKind.LOADER) if written and known.LOADER_NAME.search(node.attr) else UNKNOWN

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        written = key(node)
        if written in self.environment:
            return self.environment[written]
        inner = self.value(node.value)
        if inner.kind is ValueKind.OUTPUT:
            return TENSOR
        if inner.kind is ValueKind.TENSOR:
            return Value(ValueKind.TENSOR, mask=inner.mask, sure=inner.sure)
        if inner.kind is ValueKind.HOST:
            return inner.but(listed=inner.listed and isinstance(node.slice, ast.Slice))
        return UNKNOWN if inner.kind is ValueKind.LOADER else inner

    def _of_Starred(self, node: ast.Starred) -> Value:
        return self.element(node.value)

    def _of_NamedExpr(self, node: ast.NamedExpr) -> Value:
        return self.value(node.value)

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        one, other = self.value(node.body), self.value(node.orelse)
        return one if one == other else UNKNOWN

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        return self._alike([self.value(v) for v in node.values])

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        inner = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return HOST
        if inner.kind is ValueKind.UNKNOWN:
            return inner if isinstance(node.op, ast.Invert) else UNKNOWN
        return TENSOR if inner.kind is ValueKind.OUTPUT else inner

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr):
            return HOST
        result = joined([left, right])
        if result.kind is ValueKind.HOST:
            return result.but(listed=left.listed or right.listed)
        masks = [v for v in (left, right) if v.mask]
        logical = isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
        return result.but(mask=True) if masks and logical and result.tensor else result

    def _of_Compare(self, node: ast.Compare) -> Value:
        if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return HOST
        sides = [node.left, *node.comparators]
        if any(
            isinstance(constant(side), str) or (isinstance(side, ast.Constant) and side.value is None) for side in sides
        ):
            return HOST
        result = joined([self.value(side) for side in sides])
        test = "isnan" if len(sides) == 2 and isinstance(node.ops[0], ast.NotEq) and _same(*sides) else ""
        return result.but(mask=True, test=test) if result.kind in (ValueKind.TENSOR, ValueKind.UNKNOWN) else result

    def _of_Tuple(self, node: ast.Tuple | ast.List) -> Value:
        if not node.elts:
            return UNKNOWN
        return self._alike([self.value(e) for e in node.elts]).but(scalar=False, listed=False)

    def _of_List(self, node: ast.List) -> Value:
        words = any(isinstance(constant(element), str) for element in node.elts)
        return self._of_Tuple(node) if words else _list_value(self._of_Tuple(node))

    def _of_ListComp(self, node: ast.ListComp) -> Value:
        return _list_value(self._comprehended(node.generators, node.elt))

    def _of_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self._comprehended(node.generators, node.elt)

    def _of_DictComp(self, node: ast.DictComp) -> Value:
        return self._comprehended(node.generators, node.value)

    def _of_Dict(self, node: ast.Dict) -> Value:
        return UNKNOWN

    def _comprehended(self, generators: Iterable[ast.comprehension], element: ast.expr) -> Value:
        before = self.replace(dict(self.environment))
        for generator in generators:
            self.assign(generator.target, self.element(generator.iter))
        value = self.value(element)
        self.replace(before)
        return value.but(scalar=False, listed=False)

    def assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target of an assignment or a loop, and all names in it."""
        if isinstance(target, ast.Tuple | ast.List):
            inner = TENSOR if value.kind is ValueKind.OUTPUT else value
            for element in target.elts:
                self.assign(element, inner)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)
        elif written := key(target):
            self.bind(written, value)

    def _of_Call(self, call: ast.Call) -> Value:
        if makes_module(call, self.names, self._is_a_module):
            return MODULE
        if self._is_a_module(key(call.func)):
            return OUTPUT
        name = self.names.of(call.func)
        if name.startswith("torch."):
            return self._torch(name.removeprefix("torch."), call)
        if isinstance(call.func, ast.Attribute) and not name.startswith(known.HOST_MODULES):
            return self._method(call.func, call)
        return self._function(name, call)

    def _is_a_module(self, written: str) -> bool:
        """Return whether a name or attribute is a module, as the file shows."""
        return self.environment.get(written, UNKNOWN).kind is ValueKind.MODULE

    def _function(self, name: str, call: ast.Call) -> Value:
        if name in known.HOST_FUNCTIONS or name.startswith(known.HOST_MODULES):
            same = name in ("copy.copy", "copy.deepcopy")
            if name in known.ARRAYS:
                return _list_value(HOST)
            return self.value(call.args[0]) if same and call.args else HOST
        if name in ("sum", "max", "min", "abs") and call.args:
            inner = joined([self.element(call.args[0]) if len(call.args) == 1 else self.value(a) for a in call.args])
            return inner
        if name in ("list", "sorted") and call.args:
            return _list_value(self.element(call.args[0]))
        if name in ("tuple", "reversed") and call.args:
            return self.element(call.args[0])
        if name == "next" and call.args:
            return self.element(call.args[0])
        if name == "iter" and call.args and (iterated := self.value(call.args[0])).kind is ValueKind.LOADER:
            return iterated
        if name.rpartition(".")[2] == "DataLoader":
            return _loader(call)
        if known.MODULES_OWN.search(name):
            return OUTPUT
        return self._of_loss(name, call)

    def _of_loss(self, name: str, call: ast.Call) -> Value:
        values = [self.value(a) for a in call.args]
        if known.LOSSES.search(name.rpartition(".")[2]) and any(v.tensor or v.kind is ValueKind.OUTPUT for v in values):
            return Value(ValueKind.TENSOR)
        return UNKNOWN

    def _torch(self, name: str, call: ast.Call) -> Value:
        last = name.rpartition(".")[2]
        if name == "utils.data.DataLoader":
            return _loader(call)
        if name in ("cuda.Event", "cuda.Stream", "cuda.current_stream", "Event", "Stream"):
            return Value(ValueKind.EVENT)
        if name in ("nn.Parameter", "nn.parameter.Parameter", "autograd.grad"):
            return TENSOR
        if name in ("nn.utils.clip_grad_norm_", "nn.utils.clip_grad.clip_grad_norm_", "nn.utils.get_total_norm"):
            return Value(ValueKind.TENSOR, scalar=True)
        if name in known.OF_TYPE:
            return CPU
        if name.startswith("distributions.") and last[:1].isupper():
            checks = constant(argument(call, "validate_args")) is not False
            return Value(ValueKind.DISTRIBUTION) if checks else UNKNOWN
        if not name.startswith(known.NAMESPACES):
            head = name.partition(".")[0]
            if (
                "." in name
                or head in known.NO_TENSOR
                or head.startswith(("is_", "set_", "get_", "_"))
                or head[:1].isupper()
            ):
                return HOST if head.startswith(("is_", "get_")) or head in ("equal", "allclose", "numel") else UNKNOWN
        return self._factory_value(last, call)

    def _factory_value(self, name: str, call: ast.Call) -> Value:
        """Return the tensor that one of torch's functions makes."""
        mask = (key(argument(call, "dtype") or call) or "").endswith("bool") or name in known.QUESTIONS
        if name in known.FACTORIES or name in known.FROM_HOST:
            return self._factory_place(call, name).but(mask=mask)
        values = [self.value(a) for a in call.args] + [self.value(k.value) for k in call.keywords if k.arg]
        moved = argument(call, "device")
        if moved is not None and name in known.LIKE:
            return self._on(moved)
        given = [v for v in values if v.kind is not ValueKind.HOST]
        result = joined(given) if given else HOST
        if result.kind is ValueKind.UNKNOWN:
            result = TENSOR
        if result.kind is ValueKind.HOST:
            return UNKNOWN
        inner = self.value(call.args[0]) if call.args else UNKNOWN
        test = name if name in known.NOT_FINITE else inner.test if name in ("any", "all") else ""
        mask = (
            mask
            or (inner.mask and name in known.KEEP_MASK)
            or (name == "where" and len(call.args) == 3 and all(v.mask for v in values[1:3]))
        )
        reduced = name in known.REDUCTIONS and len(call.args) == 1 and not call.keywords
        scalar = reduced or (known.LOSSES.search(name) is not None and argument(call, "reduction") is None)
        return result.but(mask=mask, scalar=scalar or result.scalar, test=test) if result.tensor else result

    def _factory_place(self, call: ast.Call, name: str) -> Value:
        """Return the tensor of a factory, with the device that the call names."""
        device = argument(call, "device")
        if device is not None:
            return self._on(device)
        if (
            name in ("tensor", "as_tensor", "asarray")
            and call.args
            and self.value(call.args[0]).tensor
            and name != "tensor"
        ):
            return self.value(call.args[0])
        inherits = any(k.arg is None for k in call.keywords)
        return UNKNOWN if inherits else CPU

    def _on(self, device: ast.expr) -> Value:
        """Return a tensor on this device."""
        if is_cpu(device):
            return CPU
        if isinstance(device, ast.Attribute) and device.attr == "device":
            owner = self.value(device.value)
            return CPU if owner.kind is ValueKind.CPU else Value(ValueKind.TENSOR, sure=owner.sure)
        if isinstance(device, ast.Constant) and device.value is None:
            return CPU
        literal = isinstance(device, ast.Constant) or bool(known.DEVICE_NAME.search(key(device)))
        return Value(ValueKind.TENSOR, sure=literal)

    def _method(self, function: ast.Attribute, call: ast.Call) -> Value:
        receiver, name = self.value(function.value), function.attr
        if name == "to":
            return self._moved(receiver, call)
        if name == "cuda":
            return (
                Value(ValueKind.TENSOR, mask=receiver.mask, sure=True)
                if receiver.kind is not ValueKind.UNKNOWN
                else UNKNOWN
            )
        if name == "cpu":
            return CPU
        if name in ("item", "tolist", "numpy"):
            return HOST if name == "item" else _list_value(HOST)
        if name in known.NEW:
            return self._on(d) if (d := argument(call, "device")) is not None else receiver
        if receiver.kind in (ValueKind.TENSOR, ValueKind.CPU, ValueKind.OUTPUT):
            return self._of_tensor(receiver, name, call)
        if receiver.kind in (ValueKind.HOST, ValueKind.BATCH):
            return receiver.but(listed=False)
        if receiver.kind is ValueKind.DISTRIBUTION:
            return TENSOR if name in known.OF_DISTRIBUTIONS else UNKNOWN
        if receiver.kind in (ValueKind.LOADER, ValueKind.EVENT):
            return UNKNOWN
        if name in known.ONLY_TENSORS:
            mask = receiver.mask and name in known.KEEP_MASK
            return HOST if name in known.HOST_METHODS or name == "backward" else Value(ValueKind.TENSOR, mask=mask)
        written = key(function)
        if self._is_module(written) or known.MODULES_OWN.search(written):
            return OUTPUT
        return self._of_loss(name, call)

    def _of_tensor(self, receiver: Value, name: str, call: ast.Call) -> Value:
        if receiver.kind is ValueKind.OUTPUT:
            if name in known.METHODS_OF_OUTPUTS:
                return UNKNOWN
            receiver = TENSOR
        if name in known.HOST_METHODS or name == "backward" or (name == "type" and not call.args and not call.keywords):
            return HOST
        if receiver.kind is ValueKind.CPU:
            return joined([receiver, *(self.value(a) for a in call.args)])
        mask = name in known.QUESTIONS or name == "bool" or (receiver.mask and name in known.KEEP_MASK)
        mask = mask or (name == "type" and bool(call.args) and key(call.args[0]).endswith("bool"))
        scalar = receiver.scalar or (name in known.REDUCTIONS and not call.args and not call.keywords)
        test = name if name in known.NOT_FINITE else receiver.test if name in ("any", "all") else ""
        return Value(ValueKind.TENSOR, mask=mask, scalar=scalar, sure=receiver.sure, test=test)

    def _moved(self, receiver: Value, call: ast.Call) -> Value:
        """Return the result of `x.to(…)`: a module itself, or a tensor on that device or of that dtype."""
        device = argument(call, "device", 0)
        if device is None:
            return receiver
        if is_cpu(device):
            return CPU if receiver.kind is not ValueKind.UNKNOWN else UNKNOWN
        if key(device).endswith("bool"):
            return receiver.but(mask=receiver.tensor)
        if not self.names_device(device):
            return receiver
        if receiver.kind in (ValueKind.TENSOR, ValueKind.CPU, ValueKind.BATCH, ValueKind.OUTPUT):
            return Value(ValueKind.TENSOR, mask=receiver.mask, scalar=receiver.scalar, sure=self._on(device).sure)
        return UNKNOWN if receiver.kind is ValueKind.UNKNOWN else receiver

    def names_device(self, node: ast.expr) -> bool:
        """Return whether an argument names a device that isn't the CPU, as far as its name tells."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int) or (
                isinstance(node.value, str) and not node.value.startswith(("cpu", "meta"))
            )
        if isinstance(node, ast.Call):
            return self.names.torch(node.func) == "device" and bool(node.args) and self.names_device(node.args[0])
        if isinstance(node, ast.Attribute) and node.attr == "device":
            return self.value(node.value).kind is not ValueKind.CPU
        return bool(known.DEVICE_NAME.search(key(node)))


def is_cpu(node: ast.expr | None) -> bool:
    """Return whether an expression is the CPU: `"cpu"`, `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and node.args and key(node.func).rpartition(".")[2] == "device":
        return is_cpu(node.args[0])
    value = constant(node)
    return isinstance(value, str) and value.partition(":")[0] == "cpu"


def _list_value(value: Value) -> Value:
    """Return the value of a list of such elements; a list of numbers can be an index."""
    return value.but(listed=True) if value.kind is ValueKind.HOST else value


def _loader(call: ast.Call) -> Value:
    given = argument(call, "pin_memory")
    unclear = any(k.arg is None for k in call.keywords) or (given is not None and constant(given) is None)
    return Value(ValueKind.LOADER, pinned=is_true(given) or unclear, line=call.lineno)


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


__all__ = ["BATCH", "Environment", "Evaluator", "is_cpu"]
