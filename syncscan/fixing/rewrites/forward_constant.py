"""Makes a constant of `forward` once, as a buffer of the module that isn't saved with its weights.

The tensor is made of literals, of the module's constants, or of numbers that only `__init__` assigns; or it is a plain
attribute that `__init__` makes and every call of `forward` moves. Nothing writes to it, stores it or returns it. The
state dict stays the same. `.to(device)` moves a buffer with its module, which is what removes the wait. Other files may
cast the module, which rounds its buffers, list or broadcast them, or load a module that was pickled whole before it had
them, so this is unsafe.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File, Function
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "forward-constant"
TITLE = "A module makes or moves the same tensor in every call"
RULES = ("tensor-constructor", "to-device")
SAFETY = Safety.UNSAFE
_CLASS = """\
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__(){}

    def forward(self, x):
        return x * {}"""
BEFORE = _CLASS.format("", "torch.tensor([0.3, 0.7], device=x.device)")
AFTER = _CLASS.format(
    '\n        self.register_buffer("constant", torch.tensor([0.3, 0.7]), persistent=False)',
    "self.constant.to(x.device)",
)
FEWEST = 3
_MAKES = frozenset("tensor as_tensor arange eye linspace zeros ones full tril triu".split())
_HOLDS = frozenset("Tensor FloatTensor LongTensor".split())
"""Types that hold the numbers of a list."""
_VIEWS = frozenset("view reshape unsqueeze squeeze t expand flatten".split())
_SHAPES = _VIEWS | frozenset("tril triu bool long float log sqrt exp neg flip cumsum".split())
"""Methods that give the same for the same tensor."""
_CASTS = frozenset("half bfloat16 double float type to_empty".split())
WHY = "a buffer follows a cast of its module, such as half(), and a module that was pickled whole before lacks it"


class _Home(msgspec.Struct, frozen=True):
    """A method of a module, and its class's `__init__`."""

    method: Function
    init: Function
    begin: ast.stmt
    """The call of `super().__init__()`."""


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the constants of methods that can become buffers."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.own_waits(node) and file.seen(node).count >= FEWEST:
            home = _home(file, node)
            if home is not None:
                yield from _of(file, node, home)


def _home(file: File, node: ast.Call) -> _Home | None:
    method = file.function_of(node)
    owner = file.class_of(method)
    if owner is None or isinstance(method, ast.Module) or method.name == "__init__" or not method.args.args:
        return None
    if not any(ast.unparse(base).endswith("Module") for base in owner.bases) or method.decorator_list:
        return None
    if any(isinstance(n, ast.Name) and n.id == owner.name for n in _bases(file)):
        return None
    init = next((n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    begin = next((n for n in init.body if _begins(n)), None) if init is not None else None
    return _Home(method, init, begin) if init is not None and begin is not None else None


def _bases(file: File) -> Iterator[ast.AST]:
    for node in file.nodes:
        if isinstance(node, ast.ClassDef):
            yield from (n for base in node.bases for n in ast.walk(base))


def _begins(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return call is not None and ast.unparse(call).startswith("super(") and ast.unparse(call).endswith(".__init__()")


def _of(file: File, call: ast.Call, home: _Home) -> Iterator[Proposal]:
    moves = isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "cuda")
    inner = call.func.value if moves and isinstance(call.func, ast.Attribute) else call
    if not _is_free(file, call) or not _keeps_its_dtype(file, inner):
        return
    draft, root = Draft(file.text), _root(inner)
    if moves and isinstance(root, ast.Attribute):
        done = _registered(file, draft, root, home)
    elif moves and isinstance(inner, ast.Name):
        done = _taken(file, draft, inner, home)
    elif isinstance(inner, ast.Call) and _is_constant(file, inner, home):
        done = _made(file, draft, call, inner, home)
    else:
        return
    if done:
        yield Proposal(
            node=call,
            draft=draft,
            rule="tensor-constructor",
            rewrite=ID,
            change="make the tensor once, as a buffer that moves with its module",
            waits=file.own_waits(call),
            reads=tuple(_moved_modules(file)),
            safety=SAFETY,
            why=WHY,
        )


def _is_free(file: File, call: ast.Call) -> bool:
    """Return whether the tensor of a call is only computed with, and never written to."""
    if file.device_tensor(call) is None or any(t.grad for t in file.seen(call).tensors):
        return False
    parent = file.parents[call]
    if not isinstance(parent, ast.Assign):
        return questions.is_only_computed_with(file, call)
    target = parent.targets[0]
    if len(parent.targets) != 1 or not isinstance(target, ast.Name):
        return False
    uses = file.names(file.home_of(target), target.id)
    stores = [n for n in uses if not isinstance(n.ctx, ast.Load)]
    if len(stores) != 1 or questions.is_written(file, target.id, file.function_of(call)):
        return False
    return all(n is target or (questions.is_only_computed_with(file, n) and not file.seen(n).version) for n in uses)


def _keeps_its_dtype(file: File, maker: ast.expr) -> bool:
    """Return whether nothing casts a buffer of this tensor's type: whole numbers never are."""
    tensors = file.tensors(maker)
    if not tensors:
        return False
    if not any("float" in t.dtype or "complex" in t.dtype for t in tensors):
        return True
    calls = (n for n in file.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return file.main and not any(_casts_a_module(file, n) for n in calls)


def _casts_a_module(file: File, call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    name, of = call.func.attr, call.func.value
    if name not in _CASTS | {"to"} or questions.is_torch(of) or file.tensors(of):
        return False
    given = [*call.args, *(k.value for k in call.keywords)]
    plain = all(file.types(a) and file.types(a) <= {"torch.device", "str", "bool", "int"} for a in given)
    return name != "to" or not plain


def _is_constant(file: File, maker: ast.Call, home: _Home) -> bool:
    """Return whether a call makes the same tensor whenever it runs."""
    if not isinstance(maker.func, ast.Attribute):
        return False
    of, name = maker.func.value, maker.func.attr
    given = [*maker.args, *(k.value for k in maker.keywords if k.arg != "device")]
    if not all(_is_same(file, argument, home) for argument in given):
        return False
    if not questions.is_torch(of):
        return name in _SHAPES and isinstance(of, ast.Call) and not maker.keywords and _is_constant(file, of, home)
    if name in _HOLDS:
        return len(maker.args) == 1 and isinstance(maker.args[0], ast.List) and not maker.keywords
    return name in _MAKES and bool(maker.args) and all(k.arg in ("device", "dtype", "diagonal") for k in maker.keywords)


def _is_same(file: File, node: ast.expr, home: _Home) -> bool:
    if questions.constant(file, node) or (isinstance(node, ast.Attribute) and questions.is_torch(node.value)):
        return True
    if isinstance(node, ast.Call):
        return _is_constant(file, node, home) and not any(k.arg == "device" for k in node.keywords)
    if isinstance(node, ast.BinOp):
        return _is_same(file, node.left, home) and _is_same(file, node.right, home)
    return isinstance(node, ast.Attribute) and _is_number_of_init(file, node, home)


def _is_number_of_init(file: File, node: ast.Attribute, home: _Home) -> bool:
    """Return whether an attribute of `self` is a number, or a list of literals, that only `__init__` assigns."""
    uses = file.attributes(node.attr)
    stores = [n for n in uses if not isinstance(n.ctx, ast.Load)]
    if not _is_of_self(node, home.method) or len(stores) != 1:
        return False
    statement = file.parents[stores[0]]
    if (
        not _is_of_self(stores[0], home.init)
        or statement not in home.init.body
        or not isinstance(statement, ast.Assign)
    ):
        return False
    if file.is_number(node):
        return True
    alone = all(n is stores[0] or isinstance(file.parents[n], ast.Call) for n in uses)
    return alone and isinstance(statement.value, ast.List | ast.Tuple) and questions.constant(file, statement.value)


def _is_of_self(node: ast.Attribute, method: Function) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == method.args.args[0].arg


def _made(file: File, draft: Draft, call: ast.Call, maker: ast.Call, home: _Home) -> bool:
    """Make a constant in `__init__`, and use the buffer in its place."""
    device = next((k for k in maker.keywords if k.arg == "device"), None)
    parent = file.parents[call]
    word = parent.targets[0].id if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name) else ""
    name = _name(file, word or "constant")
    in_init, in_method = home.init.args.args[0].arg, home.method.args.args[0].arg
    given = [file.text.code(a) for a in [*maker.args, *(k for k in maker.keywords if k is not device)]]
    source = f"{file.text.code(maker.func)}({', '.join(given)})"
    at_end = any(isinstance(n, ast.Attribute) and _is_of_self(n, home.method) for n in ast.walk(maker))
    behind = home.init.body[-1] if at_end else home.begin
    if "\n" in source or isinstance(behind, ast.Return) or (at_end and in_init != in_method):
        return False
    draft.put_behind(behind, f'{in_init}.register_buffer("{name}", {source}, persistent=False)')
    moved = f".to({file.text.code(device.value)})" if device is not None else ""
    draft.replace(maker, f"{in_method}.{name}{moved}")
    return True


def _taken(file: File, draft: Draft, name: ast.Name, home: _Home) -> bool:
    """Register a tensor of the file's top level that nothing writes to, and use the buffer in its place."""
    stores = [n for n in file.names(file.home_of(name), name.id) if not isinstance(n.ctx, ast.Load)]
    assign = file.parents[stores[0]] if len(stores) == 1 and file.home_of(name) is file.tree else None
    kinds = file.tensors(name)
    if assign not in file.tree.body or not kinds or any(t.on_device or t.grad for t in kinds):
        return False
    if questions.is_written(file, name.id, file.tree) or file.seen(name).version:
        return False
    buffer = _name(file, name.id.lower())
    in_init, in_method = home.init.args.args[0].arg, home.method.args.args[0].arg
    draft.put_behind(home.begin, f'{in_init}.register_buffer("{buffer}", {name.id}, persistent=False)')
    draft.replace(name, f"{in_method}.{buffer}")
    return True


def _root(node: ast.expr) -> ast.expr:
    """Return what an expression is a part or a view of: `self.table` of `self.table[:n]`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        else:
            return node


def _name(file: File, word: str) -> str:
    taken = {getattr(n, "attr", "") for n in file.nodes} | {getattr(n, "name", "") for n in file.nodes}
    return next(n for k in range(1, 1000) if (n := word if k == 1 else f"{word}_{k}") not in taken)


def _registered(file: File, draft: Draft, attribute: ast.Attribute, home: _Home) -> bool:
    """Register a tensor that `__init__` stores in an attribute, where every use of it moves it."""
    uses = file.attributes(attribute.attr)
    stores = [n for n in uses if not isinstance(n.ctx, ast.Load)]
    if not _is_of_self(attribute, home.method) or len(stores) != 1 or not all(_is_moved(file, n) for n in uses):
        return False
    statement = file.parents[stores[0]]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or statement not in home.init.body:
        return False
    kinds = file.tensors(statement.value)
    alone = isinstance(statement.value, ast.Call) and not isinstance(statement.value.func, ast.Name)
    if not kinds or any(t.on_device or t.grad for t in kinds) or not alone or statement.lineno < home.begin.lineno:
        return False
    in_init = home.init.args.args[0].arg
    code = file.text.code(statement.value)
    draft.replace(statement, f'{in_init}.register_buffer("{attribute.attr}", {code}, persistent=False)')
    return True


def _is_moved(file: File, use: ast.Attribute) -> bool:
    """Return whether a use of an attribute stores it, or moves its tensor to the device and only computes with that."""
    if not isinstance(use.ctx, ast.Load):
        return True
    method = file.parents[use]
    while isinstance(method, ast.Subscript) or (isinstance(method, ast.Attribute) and method.attr in _VIEWS):
        called = file.parents[method]
        method = file.parents[called if isinstance(called, ast.Call) and called.func is method else method]
    call = file.parents.get(method)
    moves = isinstance(method, ast.Attribute) and method.attr in ("to", "cuda")
    return moves and isinstance(call, ast.Call) and call.func is method and _is_free(file, call)


def _moved_modules(file: File) -> Iterator[ast.Call]:
    """Yield the calls that move modules to the device, where a buffer is one tensor more."""
    for node in (n for n in file.nodes if isinstance(n, ast.Call)):
        moves = isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda")
        if moves and file.seen(node).count and not file.tensors(node):
            yield node
