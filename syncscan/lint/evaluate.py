"""Infer what an expression is from what is known of its names: a device tensor, a host value and so on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from syncscan.lint import values as known
from syncscan.lint.values import CPU, HOST, MODULE, OUTPUT, TENSOR, UNKNOWN, Value, ValueKind
from syncscan.source.code_pattern import argument, constant, key, matched
from syncscan.source.modules import Modules

Environment = dict[str, Value]
_WRAPPERS = frozenset("enumerate tqdm trange iter reversed islice track auto".split())


class Evaluator:
    """Evaluates the expressions of one function.

    `environment` says what names, attributes and items are; whoever binds one calls `bind`. `hints` are names that the
    function uses as only a tensor can be used. `is_module` says whether an attribute of `self` that is called is taken
    for a submodule.
    """

    def __init__(
        self,
        modules: Modules,
        environment: Environment,
        hints: Collection[str] = (),
        is_module: Callable[[str], bool] | None = None,
    ) -> None:
        self._modules, self.names = modules, modules.tree
        self.environment = environment
        self._hints = hints
        self._is_module = is_module or (lambda name: False)
        self._known: dict[ast.expr, Value] = {}
        self.assigned_value: ast.expr | None = None
        """The assigned expression, while a target is looked at; None otherwise."""

    def bind(self, name: str, value: Value) -> None:
        """Set what a name is from here on; what was known of its attributes and items is forgotten."""
        for inner in [other for other in self.environment if other.startswith((f"{name}.", f"{name}["))]:
            del self.environment[inner]
        self.environment[name] = value
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

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Forget what is bound meanwhile, such as a comprehension's names."""
        before = self.replace(dict(self.environment))
        yield
        self.replace(before)

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
        return UNKNOWN if value.kind is ValueKind.OUTPUT else value.but(scalar=False, listed=False)

    def _iterated(self, call: ast.Call) -> Value | None:
        """Return the elements of a wrapped iterable: `enumerate(x)`, `tqdm(x)`, `x.items()`; None for others."""
        name = self.names.full_name(call.func).rpartition(".")[2]
        if name in known.ITERATORS:
            return known.ITERATORS[name]
        if name == "zip":
            return known.alike([self.element(a) for a in call.args])
        if call.args and (
            name in _WRAPPERS or (isinstance(call.func, ast.Attribute) and self._is_loader(call.args[0]))
        ):
            return self.element(call.args[0])  # whatever logs or shows progress around a loader gives its batches
        if items := matched("$of.items() | $of.values()", call):
            inner = self.value(items.of)
            return inner if inner.on_host or inner.tensor else UNKNOWN
        return None

    def _is_loader(self, node: ast.expr) -> bool:
        return self.value(node).kind is ValueKind.LOADER

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.UnaryOp(op=ast.Not()):
                return HOST
            case ast.Name(id=name):
                return self._of_name(name)
            case ast.Attribute():
                return self._of_attribute(node)
            case ast.Subscript():
                return self._of_item(node)
            case ast.Starred(value=value):
                return self.element(value)
            case ast.NamedExpr(value=value):
                return self.value(value)
            case ast.IfExp(body=one, orelse=other):
                return self._common([one, other])
            case ast.BoolOp(values=values):
                return self._common(values)
            case ast.UnaryOp(op=op, operand=operand):
                inner = self.value(operand)
                if inner.kind is ValueKind.UNKNOWN:
                    return inner if isinstance(op, ast.Invert) else UNKNOWN
                return TENSOR if inner.kind is ValueKind.OUTPUT else inner
            case ast.BinOp():
                return self._of_operation(node)
            case ast.Compare():
                return self._of_comparison(node)
            case ast.Tuple(elts=elements):
                return self._common(elements).but(scalar=False, listed=False)
            case ast.List(elts=elements):
                held = self._common(elements).but(scalar=False, listed=False)
                return held if any(isinstance(constant(e), str) for e in elements) else known.in_list(held)
            case ast.ListComp(elt=element, generators=generators):
                return known.in_list(self._comprehended(generators, element))
            case ast.GeneratorExp(elt=element, generators=loops) | ast.DictComp(value=element, generators=loops):
                return self._comprehended(loops, element)
            case ast.Call():
                return self._of_call(node)
        return UNKNOWN

    def _common(self, nodes: Iterable[ast.expr]) -> Value:
        return known.alike([self.value(node) for node in nodes])

    def _of_name(self, name: str) -> Value:
        value = self.environment.get(name, UNKNOWN)
        if value.kind is ValueKind.UNKNOWN and name in self._hints:
            return value.but(kind=ValueKind.TENSOR)
        if value.kind is ValueKind.UNKNOWN and known.LOADER_NAME.search(name):
            return Value(ValueKind.LOADER)
        return value

    def _of_attribute(self, node: ast.Attribute) -> Value:
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

    def _of_item(self, node: ast.Subscript) -> Value:
        written = key(node)
        if written in self.environment:
            return self.environment[written]
        inner = self.value(node.value)
        if inner.kind is ValueKind.OUTPUT:
            return TENSOR
        if inner.tensor:
            return Value(ValueKind.TENSOR, mask=inner.mask, sure=inner.sure)
        if inner.kind is ValueKind.HOST:
            return inner.but(listed=inner.listed and isinstance(node.slice, ast.Slice))
        return UNKNOWN if inner.kind is ValueKind.LOADER else inner

    def _of_operation(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant | ast.JoinedStr):
            return HOST
        result = known.joined([left, right])
        if result.kind is ValueKind.HOST:
            return result.but(listed=left.listed or right.listed)
        logical = isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor)
        return result.but(mask=True) if (left.mask or right.mask) and logical and result.tensor else result

    def _of_comparison(self, node: ast.Compare) -> Value:
        sides = [node.left, *node.comparators]
        texts = any(isinstance(side, ast.Constant) and isinstance(side.value, str | None) for side in sides)
        if texts or any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return HOST
        result = self._joined(sides)
        test = "isnan" if matched("$x != $x", node) else ""
        return result.but(mask=True, test=test) if result.kind in (ValueKind.TENSOR, ValueKind.UNKNOWN) else result

    def _joined(self, nodes: Iterable[ast.expr]) -> Value:
        return known.joined([self.value(node) for node in nodes])

    def _comprehended(self, generators: Iterable[ast.comprehension], element: ast.expr) -> Value:
        with self.apart():
            for generator in generators:
                self.assign(generator.target, self.element(generator.iter))
            return self.value(element).but(scalar=False, listed=False)

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

    def _of_call(self, call: ast.Call) -> Value:
        if self._modules.makes(call, self._is_a_module):
            return MODULE
        if self._is_a_module(key(call.func)):
            return OUTPUT
        name = self.names.full_name(call.func)
        if name.startswith("torch."):
            return self._torch(name.removeprefix("torch."), call)
        if isinstance(call.func, ast.Attribute) and not name.startswith(known.HOST_MODULES):
            return self._method(call.func, call)
        return self._function(name, call)

    def _is_a_module(self, written: str) -> bool:
        return self.environment.get(written, UNKNOWN).kind is ValueKind.MODULE

    def _function(self, name: str, call: ast.Call) -> Value:
        first = call.args[0] if call.args else None
        if name in known.HOST_FUNCTIONS or name.startswith(known.HOST_MODULES):
            if name in known.ARRAYS:
                return known.in_list(HOST)
            return self.value(first) if name in ("copy.copy", "copy.deepcopy") else HOST
        if first is not None:
            if name in ("sum", "max", "min", "abs"):
                return known.joined([self.element(first)]) if len(call.args) == 1 else self._joined(call.args)
            if name in ("list", "sorted"):
                return known.in_list(self.element(first))
            if name in ("tuple", "reversed", "next"):
                return self.element(first)
            if name == "iter" and self._is_loader(first):
                return self.value(first)
        if name.rpartition(".")[2] == "DataLoader":
            return known.loader_of(call)
        return OUTPUT if known.MODULES_OWN.search(name) else self._of_loss(name, call)

    def _of_loss(self, name: str, call: ast.Call) -> Value:
        values = [self.value(a) for a in call.args]
        given = any(v.tensor or v.kind is ValueKind.OUTPUT for v in values)
        return TENSOR if given and known.LOSSES.search(name.rpartition(".")[2]) else UNKNOWN

    def _torch(self, name: str, call: ast.Call) -> Value:
        last = name.rpartition(".")[2]
        if name == "utils.data.DataLoader":
            return known.loader_of(call)
        if name in known.TORCH:
            return known.TORCH[name]
        if name in known.OF_TYPE:
            return CPU
        if name.startswith("distributions.") and last[:1].isupper():
            checks = constant(argument(call, "validate_args")) is not False
            return Value(ValueKind.DISTRIBUTION) if checks else UNKNOWN
        if not name.startswith(known.NAMESPACES):
            head = name.partition(".")[0]
            asks = head.startswith(("is_", "get_")) or head in ("equal", "allclose", "numel")
            if "." in name or head in known.NO_TENSOR or asks or head.startswith(("set_", "_")) or head[:1].isupper():
                return HOST if asks else UNKNOWN
        return self._factory_value(last, call)

    def _factory_value(self, name: str, call: ast.Call) -> Value:
        mask = key(argument(call, "dtype") or call).endswith("bool") or name in known.QUESTIONS
        if name in known.FACTORIES or name in known.FROM_HOST:
            return self._factory_place(call, name).but(mask=mask)
        moved = argument(call, "device")
        if moved is not None and name in known.LIKE:
            return self._on(moved)
        values = [self.value(a) for a in (*call.args, *(k.value for k in call.keywords if k.arg))]
        given = [v for v in values if v.kind is not ValueKind.HOST]
        if not given:
            return UNKNOWN
        result = known.joined(given)
        if result.kind is ValueKind.UNKNOWN:
            result = TENSOR
        if not result.tensor:
            return result
        inner = self.value(call.args[0]) if call.args else UNKNOWN
        chosen = name == "where" and len(call.args) == 3 and all(v.mask for v in values[1:3])
        alone = name in known.REDUCTIONS and len(call.args) == 1 and not call.keywords
        loss = known.LOSSES.search(name) is not None and argument(call, "reduction") is None
        return result.but(
            mask=mask or (inner.mask and name in known.KEEP_MASK) or chosen,
            scalar=alone or loss or result.scalar,
            test=known.test_of(name, inner),
        )

    def _factory_place(self, call: ast.Call, name: str) -> Value:
        """Return the tensor of a factory, with the device that the call names."""
        device = argument(call, "device")
        if device is not None:
            return self._on(device)
        if name in ("as_tensor", "asarray") and call.args and self.value(call.args[0]).tensor:
            return self.value(call.args[0])
        return UNKNOWN if any(k.arg is None for k in call.keywords) else CPU

    def _on(self, device: ast.expr) -> Value:
        if known.is_cpu(device) or matched("None", device):
            return CPU
        if isinstance(device, ast.Attribute) and device.attr == "device":
            owner = self.value(device.value)
            return CPU if owner.kind is ValueKind.CPU else Value(ValueKind.TENSOR, sure=owner.sure)
        literal = isinstance(device, ast.Constant) or bool(known.DEVICE_NAME.search(key(device)))
        return Value(ValueKind.TENSOR, sure=literal)

    def _method(self, function: ast.Attribute, call: ast.Call) -> Value:
        receiver, name = self.value(function.value), function.attr
        if name == "to":
            return self._moved(receiver, call)
        if name == "cuda":
            moved = Value(ValueKind.TENSOR, mask=receiver.mask, sure=True)
            return moved if receiver.kind is not ValueKind.UNKNOWN else UNKNOWN
        if name in known.READS:
            return known.READS[name]
        if name in known.NEW:
            return self._on(d) if (d := argument(call, "device")) is not None else receiver
        match receiver.kind:
            case ValueKind.TENSOR | ValueKind.CPU | ValueKind.OUTPUT:
                return self._of_tensor(receiver, name, call)
            case ValueKind.HOST | ValueKind.BATCH:
                return receiver.but(listed=False)
            case ValueKind.DISTRIBUTION:
                return TENSOR if name in known.OF_DISTRIBUTIONS else UNKNOWN
            case ValueKind.LOADER | ValueKind.EVENT:
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
        bare = not call.args and not call.keywords
        if name in known.HOST_METHODS or name == "backward" or (name == "type" and bare):
            return HOST
        if receiver.kind is ValueKind.CPU:
            return known.joined([receiver, *(self.value(a) for a in call.args)])
        to_bool = name == "bool" or (name == "type" and bool(call.args) and key(call.args[0]).endswith("bool"))
        mask = name in known.QUESTIONS or to_bool or (receiver.mask and name in known.KEEP_MASK)
        scalar = receiver.scalar or (name in known.REDUCTIONS and bare)
        return Value(ValueKind.TENSOR, mask=mask, scalar=scalar, sure=receiver.sure, test=known.test_of(name, receiver))

    def _moved(self, receiver: Value, call: ast.Call) -> Value:
        """Return the result of `x.to(…)`: a module itself, or a tensor on that device or of that dtype."""
        device = argument(call, "device", 0)
        if device is None:
            return receiver
        if known.is_cpu(device):
            return CPU if receiver.kind is not ValueKind.UNKNOWN else UNKNOWN
        if key(device).endswith("bool"):
            return receiver.but(mask=receiver.tensor)
        movable = (ValueKind.TENSOR, ValueKind.CPU, ValueKind.BATCH, ValueKind.OUTPUT)
        if receiver.kind not in movable or not self.names_device(device):
            return receiver
        return Value(ValueKind.TENSOR, mask=receiver.mask, scalar=receiver.scalar, sure=self._on(device).sure)

    def names_device(self, node: ast.expr) -> bool:
        """Return whether an argument names a device that isn't the CPU, as far as its name tells."""
        match node:
            case ast.Constant(value=str() as name):
                return not name.startswith(("cpu", "meta"))
            case ast.Constant(value=value):
                return isinstance(value, int)
            case ast.Call(args=[name, *_]):
                return self.names.torch_name(node.func) == "device" and self.names_device(name)
            case ast.Attribute(value=owner, attr="device"):
                return self.value(owner).kind is not ValueKind.CPU
        return bool(known.DEVICE_NAME.search(key(node)))
