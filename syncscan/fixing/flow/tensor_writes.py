"""Finds out what may write to the memory of a name's tensor.

What is known only to read stands in lists; everything else may write: a call of another file's function, a method of an
unknown object, a container or attribute that holds the tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from syncscan.fixing.flow import callees
from syncscan.fixing.program_file import NUMBERS, File
from syncscan.source.tree import Function, Loop, Scope

_PROPERTIES = frozenset(
    "device dtype grad_fn is_cuda is_leaf is_sparse itemsize layout ndim requires_grad shape".split()
)
"""Attributes of tensors that are no tensors."""
_ASSIGNABLE = frozenset({"grad", "requires_grad"})
"""Attributes of tensors whose assignment leaves their values."""
_HOLD = (
    *(ast.Starred, ast.UnaryOp, ast.BoolOp, ast.IfExp, ast.List, ast.Tuple, ast.Set, ast.Dict),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Expressions that may give what is in them, or hold it."""
_ONLY_LOOK = (ast.Expr, ast.FormattedValue, ast.Compare, ast.Assert, ast.If, ast.While, ast.Slice, ast.Delete)
"""Nodes that do no more with a tensor in them than to look at it."""


def is_new(file: File, value: ast.expr) -> bool:
    """Return whether an expression gives memory of its own, which nothing else holds."""
    if isinstance(value, ast.BinOp | ast.Compare):
        return True
    if isinstance(value, ast.UnaryOp):
        return not isinstance(value.op, ast.UAdd)
    if isinstance(value, ast.Subscript):
        return is_new(file, value.value)
    if not isinstance(value, ast.Call) or _writes_by_choice(value):
        return False
    functions = _called(file, value)
    if functions and all(callees.is_of_tensor(name) for name in functions):
        assert isinstance(value.func, ast.Attribute)
        is_view_of_new = is_new(file, value.func.value)
        return is_view_of_new or all(callees.gives_new(name) for name in functions)
    return bool(functions) and all(callees.gives_new(name) for name in functions)


def _called(file: File, call: ast.Call) -> frozenset[str]:
    """Return the names of what a call may run; a method that never ran is one of tensors."""
    functions = callees.names(file, call)
    if not functions and isinstance(call.func, ast.Attribute) and _may_be_tensor(file, call.func.value):
        return frozenset({f"torch.Tensor.{call.func.attr}"})
    return functions


def stays(file: File, path: ast.expr, loop: Loop) -> bool:
    """Return whether what `a`, `a.b` or `a[0]` in a loop names is the same, unchanged, as long as the loop runs."""
    root = root_of(path)
    if root is None or any(file.within(n, loop) for n in file.stores(root)):
        return False
    region = running_in(file, loop)
    while isinstance(path, ast.Subscript):
        path = path.value
    return isinstance(path, ast.Name) and not may_change(file, root, region, loop.end_lineno or loop.lineno)


def running_in(file: File, loop: ast.AST) -> list[ast.AST]:
    """Return the nodes of a loop, of the functions of the file that ran in it, and of those that it names."""
    functions = [n for n in file.nodes if isinstance(n, Function)]
    nodes = list(ast.walk(loop))
    taken: set[ast.AST] = set()
    while True:
        named = {getattr(n, "id", None) or getattr(n, "attr", None) for n in nodes}
        more = [f for f in functions if f not in taken and (file.ran_inside(f, loop) or f.name in named)]
        if not more:
            return nodes
        taken |= set(more)
        nodes += [n for function in more for n in ast.walk(function)]


def may_change(file: File, name: ast.Name, region: Collection[ast.AST], until: int) -> bool:
    """Return whether something in a region may write to the memory of a name's tensor, which is older than the region.

    `until` is the last line of the region in the name's function: what stands behind it there runs later.
    """
    spread = spread_of(file, name, region, until)
    lent = spread.is_held or not _is_only_given_new(file, name)
    return spread.may_be_written or (lent and not _leaves_alone(file, region))


def is_only_read(file: File, node: ast.expr) -> bool:
    """Return whether nothing in the file writes to the memory of an expression's tensor, or keeps it."""
    spread = MemorySpread(file, file.nodes)
    spread.look_at(node)
    return not spread.may_change


def spread_of(
    file: File, name: ast.Name, region: Collection[ast.AST], until: int = 0, *, on_host: bool = False
) -> MemorySpread:
    """Return to what the memory of a name's tensor spreads in a region."""
    spread = MemorySpread(file, region, until, on_host=on_host)
    spread.follow(file.home_of(name), name.id)
    return spread


def _leaves_alone(file: File, region: Collection[ast.AST]) -> bool:
    """Return whether no call in a region may write to a tensor that it isn't given."""
    return all(callees.runs_only(file, n, callees.leaves_alone) for n in region if isinstance(n, ast.Call))


def _is_only_given_new(file: File, name: ast.Name) -> bool:
    """Return whether all that is assigned to a name is new memory, so that nothing else holds it from before."""
    stores = [store for store in file.stores(name) if not isinstance(file.parents[store], ast.AugAssign)]
    values = [file.value_given(store) for store in stores]
    return bool(values) and all(value is not None and is_new(file, value) for value in values)


class MemorySpread:
    """Follows a tensor's memory to whatever name or view in the file shares it; what a function gets, it may write to.

    Only nodes of the region count; what stands outside of it counts up to line `until` of its function, since the
    tensor is older. With `on_host`, what lies on the device is another tensor.
    """

    def __init__(self, file: File, region: Collection[ast.AST], until: int = 0, on_host: bool = False) -> None:
        self._file, self._region, self._until, self._on_host = file, set(region), until, on_host
        self._done: set[tuple[Scope, str]] = set()
        self.is_written = False
        """Whether something in the region writes to it."""
        self.is_handed_on = False
        """Whether an unknown function gets it in the region."""
        self.is_held = False
        """Whether something keeps it that can't be followed: an attribute, a container, an unknown function."""

    @property
    def may_be_written(self) -> bool:
        """Whether something may write to it, which got it by a name or a view."""
        return self.is_written or self.is_handed_on

    @property
    def may_change(self) -> bool:
        """Whether something in the region, where it is made, may write to it, or keeps it."""
        return self.is_written or self.is_held

    def follow(self, scope: Scope, name: str) -> None:
        """Follow all uses of a name that run in the region or before."""
        if (scope, name) not in self._done:
            self._done.add((scope, name))
            for use in self._file.names(scope, name):
                if use in self._region or use.lineno <= self._until:
                    self.look_at(use)

    def look_at(self, node: ast.expr) -> None:
        """Follow an expression that shares the memory to what becomes of it."""
        parent = self._file.parents[node]
        if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            if isinstance(parent, ast.AugAssign) and not _holds_number(self._file, node):
                self._write(node)
            return
        if self._on_host and self._file.device_tensor(node) is not None:
            return
        follow = getattr(self, f"_in_{type(parent).__name__}", None)
        if isinstance(parent, _HOLD):
            self.look_at(parent)
        elif follow is not None:
            follow(parent, node)
        elif not isinstance(parent, _ONLY_LOOK):
            self.is_held = True

    def _write(self, node: ast.AST) -> None:
        self.is_written = self.is_written or node in self._region

    def _in_BinOp(self, parent: ast.BinOp, node: ast.expr) -> None:
        if self._file.types(parent) & {"list", "tuple"}:
            self.look_at(parent)

    def _in_NamedExpr(self, parent: ast.NamedExpr, node: ast.expr) -> None:
        self._bind(parent.target)
        self.look_at(parent)

    def _in_Assign(self, parent: ast.Assign | ast.AnnAssign, node: ast.expr) -> None:
        for target in parent.targets if isinstance(parent, ast.Assign) else [parent.target]:
            self._bind(target)

    _in_AnnAssign = _in_Assign

    def _in_For(self, parent: ast.For | ast.comprehension, node: ast.expr) -> None:
        if node is parent.iter:
            self._bind(parent.target)

    _in_comprehension = _in_For

    def _bind(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.follow(self._file.home_of(target), target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._bind(part)
        elif isinstance(target, ast.Starred):
            self._bind(target.value)
        elif not (isinstance(target, ast.Subscript) and self._file.tensors(target.value)):  # elements are copied
            self.is_held = True

    def _in_AugAssign(self, parent: ast.AugAssign, node: ast.expr) -> None:
        if isinstance(node, ast.List | ast.Tuple | ast.ListComp):
            self.is_held = True

    def _in_Subscript(self, parent: ast.Subscript, node: ast.expr) -> None:
        if node is parent.slice:
            return
        if isinstance(parent.ctx, ast.Load):
            self.look_at(parent)
        else:
            self._write(parent)

    def _in_Attribute(self, parent: ast.Attribute, node: ast.expr) -> None:
        if not isinstance(parent.ctx, ast.Load):
            if parent.attr not in _ASSIGNABLE:
                self._write(parent)
            return
        call = self._file.parents[parent]
        if isinstance(call, ast.Call) and call.func is parent:
            self._method(call, parent)
        elif parent.attr not in _PROPERTIES:
            self.look_at(parent)

    def _method(self, call: ast.Call, function: ast.Attribute) -> None:
        name = function.attr
        if not _may_be_tensor(self._file, function.value):
            self._called(call, function.value)
        elif (name.endswith("_") and name != "requires_grad_") or _writes_by_choice(call):
            self._write(call)
        elif name not in callees.NEW and name != "backward":
            self.look_at(call)

    def _in_keyword(self, parent: ast.keyword, node: ast.expr) -> None:
        call = self._file.parents[parent]
        if parent.arg == "out":
            self._write(parent)
        elif isinstance(call, ast.Call):
            self._called(call, node)
        else:
            self.is_held = True

    def _in_Call(self, parent: ast.Call, node: ast.expr) -> None:
        if node is parent.func:
            self.is_held = True
        else:
            self._called(parent, node)

    def _called(self, call: ast.Call, node: ast.expr) -> None:
        """Follow an argument of a call, or the object whose method is called."""
        functions = callees.names(self._file, call)
        is_known = bool(functions) and all(callees.takes(name) for name in functions)
        if not is_known or _writes_by_choice(call):
            self.is_held = True
            self.is_handed_on = self.is_handed_on or call in self._region
        elif not all(callees.only_reads(name) for name in functions):
            self.look_at(call)


def root_of(node: ast.AST) -> ast.Name | None:
    """Return the name that a chain of attributes, subscripts and methods begins with."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return None
    return node


def _may_be_tensor(file: File, node: ast.expr) -> bool:
    """Return whether an expression was a tensor wherever it ran, as far as its type is known."""
    return set(file.seen(node).types) <= {"torch.Tensor", "unknown"}


def _writes_by_choice(call: ast.Call) -> bool:
    """Return whether a call may say where it writes: `out=y`, `inplace=True`, `relu(x, True)`, or unseen arguments."""
    if any(isinstance(a, ast.Constant) and a.value is True for a in call.args):
        return True
    return any(k.arg in (None, "out") or k.arg == "inplace" for k in call.keywords)


def _holds_number(file: File, target: ast.expr) -> bool:
    """Return whether a name or attribute was a number wherever the run read it."""
    if isinstance(target, ast.Name):
        uses: Iterable[ast.expr] = file.names(file.home_of(target), target.id)
    else:
        uses = file.attributes(target.attr) if isinstance(target, ast.Attribute) else ()
    types = {kind for use in uses if isinstance(getattr(use, "ctx", None), ast.Load) for kind in file.types(use)}
    return bool(types) and types <= NUMBERS
