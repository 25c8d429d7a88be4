"""Find in a program's source what no recording shows of its network: outputs that outlive a call, and inference mode.

A network is what has parameters, is switched between training and evaluation, or is made by `torch.nn`, `torch.compile`
or a class of the file that is a module. Anything else is none: a name alone says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from syncscan.attribute.source_file import OWN, SourceFiles
from syncscan.model.finding import Finding
from syncscan.model.states import Obstacle, ObstacleKind
from syncscan.model.trace import Trace
from syncscan.source.code_pattern import stands_in

_OF_MODULES = frozenset("parameters named_parameters state_dict load_state_dict eval train zero_grad".split())
"""Methods that a network has and little else: `loader.dataset.train` is an attribute, and not called."""
_SAME_MEMORY = frozenset("detach detach_ view reshape squeeze unsqueeze transpose permute contiguous".split())
"""Methods that may return a tensor in the memory of the one that they are called on."""
_STORES = frozenset("append extend appendleft add put".split())
"""Methods of containers that store their argument."""
_Loop = ast.For | ast.AsyncFor | ast.While
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    file: str
    line: int


def in_source(trace: Trace, findings: Sequence[Finding], files: SourceFiles = OWN) -> tuple[Obstacle, ...]:
    """Return the obstacles to CUDA graphs that the source around a trace's steps shows; none without source.

    Where capture doesn't say where the steps are, the lines of the findings do.
    """
    seen = dict[ObstacleKind, Obstacle]()
    for place in _places(trace, findings):
        tree = files.tree_of(place.file)
        if tree is None:
            continue
        networks = _networks(tree)
        places = (
            (ObstacleKind.OUTPUTS, _kept(tree, networks, place.line)),
            (ObstacleKind.INFERENCE_MODE, _inference(tree, networks)),
        )
        for kind, at in places:
            if at is not None:
                name, line = at
                where = f"`{name}`, {PurePath(place.file.replace(chr(92), '/')).name}:{line}"
                seen.setdefault(kind, Obstacle(kind, 1, where=where))
    return tuple(seen.values())


def _places(trace: Trace, findings: Sequence[Finding]) -> list[Place]:
    """Return a line in each loop that the steps may be rounds of: as capture saw it, else as syncs' lines have it."""
    run = trace.info.capture.run
    if run is not None and run.loop is not None:
        return [Place(run.loop.file, run.loop.last)]
    sources = (f.source for f in findings if f.owner == "user")
    return list(dict.fromkeys(Place(s.file, s.line) for s in sources if s and s.exact))


def _networks(tree: ast.Module) -> frozenset[str]:
    """Return the names and attributes, as they are written, that are networks."""
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_module(node)}
    networks = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_MODULES:
            networks.add(_name(node.func.value))
        elif isinstance(node, ast.Assign) and _makes_network(node.value, classes):
            networks.update(map(_name, node.targets))
    return frozenset(networks - {"", "self", "optimizer"})


def _is_module(node: ast.ClassDef) -> bool:
    return any(_name(base).rpartition(".")[2] in ("Module", "LightningModule") for base in node.bases)


def _makes_network(value: ast.expr, classes: set[str]) -> bool:
    """Return whether an expression makes a network: `nn.Linear(…)`, `Net().to(device)`, `torch.compile(…)`."""
    while isinstance(value, ast.Call):
        called = _name(value.func)
        if called in classes or called.startswith(("nn.", "torch.nn.")) or called == "torch.compile":
            return not called.startswith(
                ("nn.functional", "torch.nn.functional", "nn.Parameter", "nn.init", "nn.utils")
            )
        value = value.func.value if isinstance(value.func, ast.Attribute) else ast.Constant(None)
    return False


def _name(node: ast.AST) -> str:
    """Return a name or a chain of attributes as it is written, else nothing."""
    if isinstance(node, ast.Attribute):
        owner = _name(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return node.id if isinstance(node, ast.Name) else ""


# outputs that outlive a call


def _kept(tree: ast.Module, networks: frozenset[str], line: int) -> tuple[str, int] | None:
    """Return name and line of an output that a loop around a line keeps from round to round; None without one."""
    loops = [node for node in ast.walk(tree) if isinstance(node, _Loop) and stands_in(node, line)]
    for loop in reversed(loops):
        if any(isinstance(node, ast.Call) and _name(node.func) in networks for node in _inside(loop)):
            outputs = _outputs(loop, networks)
            return _carried(loop, outputs) or _stored(loop, outputs, networks)
    return None


def _outputs(loop: _Loop, networks: frozenset[str]) -> dict[str, int]:
    """Return the names to which a loop gives last what a network returned, or what is in its memory, with the line."""
    given = dict[str, int]()
    for node in sorted(_statements(loop), key=lambda node: node.lineno):
        for name in _given(node):
            given.pop(name, None)
            if _is_output(node.value, networks, given):
                given[name] = node.lineno
    return given


def _statements(loop: _Loop) -> Iterator[ast.Assign]:
    return (node for node in _inside(loop) if isinstance(node, ast.Assign))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all within it, without inner functions and classes."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _Function | ast.ClassDef | ast.Lambda):
            yield from _inside(child)


def _given(node: ast.Assign) -> Iterator[str]:
    for target in node.targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from filter(None, map(_name, parts))


def _is_output(value: ast.expr, networks: frozenset[str], outputs: Iterable[str]) -> bool:
    """Return whether an expression is what a network's call returned, a part of it, or in the same memory."""
    if isinstance(value, ast.Subscript | ast.Attribute) and not _name(value):
        return _is_output(value.value, networks, outputs)
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in _SAME_MEMORY:
            return _is_output(value.func.value, networks, outputs)
        return _name(value.func) in networks
    return _name(value) in outputs


def _carried(loop: _Loop, outputs: dict[str, int]) -> tuple[str, int] | None:
    """Return an output that a round reads before it has one of its own: the last round's."""
    for name, line in outputs.items():
        uses = [node for node in _inside(loop) if isinstance(node, ast.Name | ast.Attribute) and _name(node) == name]
        loads = [node.lineno for node in uses if isinstance(node.ctx, ast.Load)]
        stores = [node.lineno for node in uses if isinstance(node.ctx, ast.Store)]
        if loads and min(loads) <= min(stores) and _reads_first(loop, name, min(stores)):
            return name, line
    return None


def _reads_first(loop: _Loop, name: str, line: int) -> bool:
    """Return whether a name is read before the line that gives it a value first, or by the value in that line."""
    before = (node for node in _inside(loop) if isinstance(node, ast.Name | ast.Attribute) and node.lineno < line)
    if any(_name(node) == name for node in before):
        return True
    values = (node.value for node in _statements(loop) if node.lineno == line)
    return any(_name(node) == name for value in values for node in _inside(value))


def _stored(loop: _Loop, outputs: dict[str, int], networks: frozenset[str]) -> tuple[str, int] | None:
    """Return a container that is filled with outputs, and that no round begins anew."""
    fresh = {name for node in _statements(loop) for name in _given(node)}
    for node in _inside(loop):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STORES):
            continue
        container = _name(node.func.value)
        if container and container not in fresh and any(_is_output(arg, networks, outputs) for arg in node.args):
            return container, node.lineno
    return None


# inference mode


def _inference(tree: ast.Module, networks: frozenset[str]) -> tuple[str, int] | None:
    """Return a network that is trained and called in inference mode too, and the line of that call."""
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    regions = list(_regions(tree))
    trained = [(name, line) for name, line in _called_beside_backward(tree, functions, regions) if name in networks]
    for region in regions:
        for call in (node for node in ast.walk(region) if isinstance(node, ast.Call)):
            name = _name(call.func)
            lines = (line for called, line in trained if called == name)
            if any(_is_one(functions, name, call.lineno, line) for line in lines):
                return name, call.lineno
    return None


def _is_one(functions: Sequence[ast.stmt], name: str, *lines: int) -> bool:
    """Return whether a name in two lines may be one network: not where functions each have it of their own.

    What one function has, another one has too if it is called there.
    """
    around = [[node for node in functions if stands_in(node, line)] for line in lines]
    owners = [next((node for node in those if name in _local(node)), None) for those in around]
    if owners[0] is owners[1] or None not in owners:
        return owners[0] is owners[1]
    owner = owners[0] or owners[1]
    called = around[1 if owners[0] else 0][-1:]
    calls = (node for node in ast.walk(owner or ast.Pass()) if isinstance(node, ast.Call))
    return any(_name(call.func).rpartition(".")[2] == getattr(node, "name", "") for call in calls for node in called)


def _local(function: ast.stmt) -> frozenset[str]:
    nodes = (n for child in ast.iter_child_nodes(function) for n in _inside_of(child) if isinstance(n, ast.Assign))
    return frozenset(name for node in nodes for name in _given(node))


def _regions(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements and functions that run in inference mode."""
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith):
            modes = [item.context_expr for item in node.items]
        else:
            modes = node.decorator_list if isinstance(node, _Function) else []
        if any(_is_inference_mode(mode) for mode in modes):
            yield node  # type: ignore[misc]


def _is_inference_mode(mode: ast.expr) -> bool:
    called = mode.func if isinstance(mode, ast.Call) else mode
    off = isinstance(mode, ast.Call) and any(isinstance(a, ast.Constant) and a.value is False for a in mode.args)
    return _name(called).rpartition(".")[2] == "inference_mode" and not off


def _called_beside_backward(
    tree: ast.Module, functions: Sequence[ast.stmt], regions: Sequence[ast.stmt]
) -> Iterator[tuple[str, int]]:
    """Yield name and line of what functions that also run a backward pass call outside of these regions."""
    for scope in (tree, *functions):
        calls = [n for child in ast.iter_child_nodes(scope) for n in _inside_of(child) if isinstance(n, ast.Call)]
        if any(isinstance(n.func, ast.Attribute) and n.func.attr == "backward" for n in calls):
            outside = (n for n in calls if not any(stands_in(region, n.lineno) for region in regions))
            yield from ((_name(n.func), n.lineno) for n in outside)


def _inside_of(node: ast.AST) -> Iterator[ast.AST]:
    return iter(()) if isinstance(node, _Function | ast.ClassDef | ast.Lambda) else _inside(node)
