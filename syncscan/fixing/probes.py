"""Probes in a running program: what they are put around, and what they report.

A node's number is its place in `ast.walk` of the text as it is, so that who reads the recorder's notes needs the text
alone. Lines and columns stay, for what the dry run says of lines.
"""

from __future__ import annotations

import ast
import builtins
import ctypes
import importlib
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from syncscan.dryrun import tensor_memory
from syncscan.fixing.messages import Entered, Observations, Observed, Tensor
from syncscan.source.tree import hands_back

SEEN, BEGIN, INSIDE, COUNTED = "_syncscan_seen_", "_syncscan_begin_", "_syncscan_inside_", "_syncscan_counted_"
"""Names of the recorder's functions among the builtins."""
_VALUES = (
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.List,
    ast.Tuple,
    ast.Dict,
)
_UNSEEN_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.AnnAssign: ("annotation",),
    ast.AsyncFunctionDef: ("args", "decorator_list", "returns", "type_params"),
    ast.ClassDef: ("bases", "keywords", "decorator_list", "type_params"),
    ast.Delete: ("targets",),
    ast.FormattedValue: ("format_spec",),
    ast.FunctionDef: ("decorator_list", "returns", "type_params"),
    ast.arg: ("annotation",),
    ast.match_case: ("pattern",),
}
"""Parts of nodes that hold no values of a step: annotations, decorators, what is deleted."""


def probed(text: str, file: int = 0) -> ast.Module:
    """Return a text as a tree, with probes; a recorder tells the nodes of several files apart by `file`."""
    tree = ast.parse(text)
    prober = _Prober({node: (file, number) for number, node in enumerate(ast.walk(tree))})
    prober.with_probes_inside(tree)
    return ast.fix_missing_locations(tree)


class _Prober:
    def __init__(self, numbers: dict[ast.AST, tuple[int, int]]) -> None:
        self._numbers = numbers

    def with_probes_inside(self, node: ast.AST) -> None:
        """Put probes around the parts of a node."""
        for field, value in ast.iter_fields(node):
            if field in _UNSEEN_FIELDS.get(type(node), ()):
                continue
            if isinstance(value, list):
                value[:] = [part for old in value for part in self._probed(old)]
            elif _has_no_value(node, field, value):
                self.with_probes_inside(value)
            elif isinstance(value, ast.AST):
                setattr(node, field, *self._probed(value))

    def _probed(self, node: Any) -> list[Any]:
        """Return a node with probes inside and around it, in a list."""
        if not isinstance(node, ast.AST):
            return [node]
        self.with_probes_inside(node)
        match node:
            case ast.expr() if _showable(node):
                return [_wrap(node, self._numbers[node])]
            case ast.FunctionDef() if not hands_back(node):
                docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
                inner = node.body[len(docstring) :] or [ast.Pass()]
                node.body = [*docstring, _within(inner, self._numbers[node], node)]
            case ast.For() | ast.While() if not hands_back(node):
                return [_within([node], self._numbers[node], node)]
            case ast.Assign(targets=targets) if any(isinstance(target, ast.Subscript) for target in targets):
                return [_within([node], self._numbers[node], node, COUNTED)]  # as its target can wait by itself
            case ast.AugAssign(target=ast.Subscript()) | ast.AnnAssign(target=ast.Subscript()):
                return [_within([node], self._numbers[node], node, COUNTED)]
        return [node]


def _has_no_value(node: ast.AST, field: str, part: ast.AST) -> bool:
    """Return whether a part of a node is no value of its own: a called method or built-in, an index with slices."""
    if isinstance(node, ast.Call) and field == "func":
        return isinstance(part, ast.Attribute) or (isinstance(part, ast.Name) and hasattr(builtins, part.id))
    return isinstance(node, ast.Subscript) and field == "slice" and isinstance(part, ast.Tuple)


def _showable(node: ast.expr) -> bool:
    """Return whether a probe may wrap an expression: not a literal, and no name that the compiler treats specially."""
    loaded = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    special = isinstance(node, ast.Name) and node.id in ("super", "__class__", "__debug__")
    return isinstance(node, _VALUES) and loaded and not special


def _place(number: tuple[int, int]) -> ast.expr:
    return ast.Tuple([ast.Constant(part) for part in number], ast.Load())


def _wrap(node: ast.expr, number: tuple[int, int]) -> ast.expr:
    begin = ast.Call(ast.Name(BEGIN, ast.Load()), [], [])
    call = ast.Call(ast.Name(SEEN, ast.Load()), [_place(number), begin, node], [])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def _within(body: list[ast.stmt], number: tuple[int, int], at: ast.stmt, name: str = INSIDE) -> ast.stmt:
    context = ast.Call(ast.Name(name, ast.Load()), [_place(number)], [])
    block = ast.With([ast.withitem(context)], body)
    place = ast.copy_location(block, at)
    return ast.fix_missing_locations(place)


Place = tuple[int, int]
"""Numbers of a file and of a node in it."""
MOST = 2_000
"""Values of one expression that are looked at closely; more are only counted."""
SHAPES = 8
ELEMENTS = 64
"""Elements of a container whose types are noted."""
COMPARED = 512
"""Bytes of a tensor that are compared."""
UNSEEN = "unseen"
"""Type of a value that can't be looked at."""
_PLAIN = (int, float, bool, str, type(None))
"""Types whose equal values are the same."""
_CALLED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
"""Types of what has a name of its own, by which rewrites know what a call runs."""


class ProbeRecorder:
    """Collects the values, waits and nesting that probes report; `waits` counts those that the run has met so far."""

    def __init__(self, waits: Callable[[], int]) -> None:
        self._waits = waits
        self._torch = importlib.import_module("torch")
        self._seen: dict[Place, Observations] = {}
        self._tensors: dict[Place, dict[Tensor, None]] = {}
        self._changes: dict[Place, set[Place]] = defaultdict(set)
        self._in_blocks: dict[tuple[Place, Place], tuple[int, object, object]] = {}
        self._entered: dict[Place, Entered] = {}
        self._inside: dict[Place, set[Place]] = {}
        self._running: list[tuple[Place, int]] = []
        """Number and entry of each loop and function that runs, outermost first."""

    def install(self) -> None:
        """Put the functions that probes call among the builtins."""
        functions = {SEEN: self.saw, BEGIN: self._waits, INSIDE: self.inside, COUNTED: self._counted}
        for name, function in functions.items():
            setattr(builtins, name, function)

    def saw(self, number: Place, before: int, value: Any) -> Any:
        """Note an expression's value, and how often the host waited for it; return the value."""
        seen = self._seen.get(number)
        if seen is None:
            seen = self._seen[number] = Observations()
        seen.count += 1
        seen.waits += self._waits() - before
        if seen.count <= MOST:
            with self._torch._C.DisableTorchFunction():
                self._look_safely(number, seen, value)
        return value

    def _look_safely(self, number: Place, seen: Observations, value: Any) -> None:
        """Note a value; one that can't be looked at is of no type that a rewrite knows, and the program goes on."""
        try:
            self._look(number, seen, value)
        except Exception:  # whatever a class of the program raises where its attributes are asked for
            seen.types.append(UNSEEN)
            self._changes[number].update(block for block, _ in self._running)

    def inside(self, number: Place) -> _Block:
        return _Block(self._running, number, self._enter)

    def observed(self, files: Sequence[str]) -> dict[str, Observed]:
        """Return the notes of each file, its nodes numbered from 0."""
        notes = [Observed() for _ in files]
        for (file, number), seen in self._seen.items():
            seen.tensors = list(self._tensors.get((file, number), ()))
            seen.changes_in = [n for of, n in self._changes[file, number] if of == file]
            notes[file].seen[number] = seen
        for (file, number), entered in self._entered.items():
            entered.inside = sorted(n for of, n in self._inside[file, number] if of == file)
            notes[file].entered[number] = entered
        return dict(zip(files, notes, strict=True))

    def _enter(self, number: Place) -> int:
        """Note that a loop or function begins, and return the number of this entry."""
        entered = self._entered.setdefault(number, Entered())
        entered.count += 1
        self._inside.setdefault(number, set()).update(block for block, _ in self._running)
        return entered.count

    @contextmanager
    def _counted(self, number: Place) -> Iterator[None]:
        before = self._waits()
        yield
        seen = self._seen.setdefault(number, Observations())
        seen.count += 1
        seen.waits += self._waits() - before

    def _look(self, number: Place, seen: Observations, value: Any) -> None:
        kind = type(value)
        name = self._name(kind)
        if name not in seen.types:
            seen.types.append(name)
        if isinstance(value, self._torch.Tensor):
            self._look_at_tensor(number, seen, value)
        elif kind in (int, float, bool):
            seen.zero = seen.zero or not value
        elif kind in (list, tuple, dict) or name == "collections.deque":
            self._look_at_container(seen, value)
        elif isinstance(value, _CALLED):
            if (full_name := _full_name(value)) not in seen.elements:
                seen.elements.append(full_name)
        elif name == "numpy.ndarray" and str(value.dtype) not in seen.elements:
            seen.elements.append(str(value.dtype))
        self._compare(number, value)

    def _name(self, kind: type) -> str:
        if issubclass(kind, type):
            return "type"
        if issubclass(kind, self._torch.Tensor):
            return "torch.Tensor" if kind in (self._torch.Tensor, self._torch.nn.Parameter) else kind.__qualname__
        return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"

    def _look_at_tensor(self, number: Place, seen: Observations, value: Any) -> None:
        place = tensor_memory.place_of(value)
        tensor = Tensor(
            dtype=str(value.dtype).removeprefix("torch."),
            dims=value.dim(),
            on_device=place == tensor_memory.DEVICE,
            pinned=place == tensor_memory.PINNED,
            grad=bool(value.requires_grad),
            leaf=bool(value.is_leaf),
        )
        self._tensors.setdefault(number, {})[tensor] = None
        shape = list(value.shape)
        if len(seen.shapes) < SHAPES and shape not in seen.shapes:
            seen.shapes.append(shape)
        self._measure(seen, value.numel())
        seen.version = max(seen.version, 0 if value.is_inference() else value._version)

    def _look_at_container(self, seen: Observations, value: Any) -> None:
        self._measure(seen, len(value))
        inner = value.values() if isinstance(value, dict) else value
        for element, _ in zip(inner, range(ELEMENTS), strict=False):
            name = self._name(type(element))
            if name not in seen.elements:
                seen.elements.append(name)

    def _measure(self, seen: Observations, length: int) -> None:
        seen.shortest, seen.longest = min(seen.shortest, length), max(seen.longest, length)

    def _compare(self, number: Place, value: Any) -> None:
        """Note in which of the running loops and functions the value isn't the first one, unchanged."""
        plain = type(value) in _PLAIN or isinstance(value, (self._torch.device, self._torch.dtype))
        state = (value if plain else id(value), self._version(value))
        for block, entry in self._running:
            if block in self._changes[number]:
                continue
            first = self._in_blocks.get((number, block))
            if first is None or first[0] != entry:
                self._in_blocks[number, block] = (entry, state, value)
            elif first[1] != state:
                self._changes[number].add(block)
                self._in_blocks[number, block] = (entry, None, None)

    def _version(self, value: Any) -> object:
        """Return what changes when a tensor, or a list of numbers, is written to."""
        if isinstance(value, self._torch.Tensor):
            return (0 if value.is_inference() else value._version), *self._content(value)
        if type(value) is not list:
            return 0
        return len(value), repr([v for v in value[:ELEMENTS] if type(v) in (int, float, bool)])

    def _content(self, tensor: Any) -> tuple[int, bytes]:
        """Return where a tensor lies and its first bytes: optimizers write to tensors whose version stays."""
        try:
            address = tensor.data_ptr()
        except tensor_memory.WITHOUT_STORAGE:  # sparse, nested or wrapped: only its version tells
            return 0, b""
        if not address or not tensor.is_contiguous() or tensor.device.type != "cpu":
            return address, b""
        return address, ctypes.string_at(address, min(tensor.numel() * tensor.element_size(), COMPARED))


def _full_name(function: Any) -> str:
    """Return a function's or class's name, with its module's where it has one."""
    module, name = getattr(function, "__module__", None), function.__qualname__.removeprefix("_VariableFunctionsClass.")
    return f"{module}.{name}" if module else name


class _Block:
    __slots__ = ("_enter", "_number", "_running")

    def __init__(self, running: list[tuple[Place, int]], number: Place, enter: Callable[[Place], int]) -> None:
        self._running, self._number, self._enter = running, number, enter

    def __enter__(self) -> None:
        self._running.append((self._number, self._enter(self._number)))

    def __exit__(self, *_: object) -> None:
        self._running.pop()
