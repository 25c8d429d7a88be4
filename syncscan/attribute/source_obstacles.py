"""Find in a program's source what no recording shows of its network: outputs that outlive a call, and inference mode.

A network is what has parameters, is switched between training and evaluation, or is made by `torch.nn`, `torch.compile`
or a class of the file that is a module. Anything else is none: a name alone says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import PurePath

from syncscan.attribute.source_file import OWN, SourceFiles
from syncscan.model.finding import Finding
from syncscan.model.states import Obstacle, ObstacleKind
from syncscan.model.trace import Trace
from syncscan.source.code_pattern import called, dotted, matched
from syncscan.source.modules import Modules
from syncscan.source.tree import Loop, SourceTree, contexts_of, lines_of, walk_own

_OF_MODULES = frozenset("parameters named_parameters state_dict load_state_dict eval train zero_grad".split())
"""Methods that a network has and little else: `loader.dataset.train` is an attribute, and not called."""
_SAME_MEMORY = frozenset("detach detach_ view reshape squeeze unsqueeze transpose permute contiguous".split())
"""Methods that may return a tensor in the memory of the one that they are called on."""
_STORES = frozenset("append extend appendleft add put".split())
"""Methods of containers that store their argument."""
_NameAt = tuple[str, int]
"""A dotted name, and its line."""


def in_source(trace: Trace, findings: Sequence[Finding], files: SourceFiles = OWN) -> tuple[Obstacle, ...]:
    """Return the obstacles to CUDA graphs that the source around a trace's steps shows; none without source.

    Where capture doesn't say where the steps are, the lines of the findings do.
    """
    seen = dict[ObstacleKind, Obstacle]()
    for file, line in _places(trace, findings):
        if tree := files.tree_of(file):
            program = _Program(tree)
            for kind, at in (
                (ObstacleKind.OUTPUTS, program.surviving_output(line)),
                (ObstacleKind.INFERENCE_MODE, program.inference()),
            ):
                if at is not None:
                    where = f"`{at[0]}`, {PurePath(file.replace(chr(92), '/')).name}:{at[1]}"
                    seen.setdefault(kind, Obstacle(kind, 1, where=where))
    return tuple(seen.values())


def _places(trace: Trace, findings: Sequence[Finding]) -> list[tuple[str, int]]:
    """Return a line in each loop that the steps may be rounds of: as capture saw it, else as syncs' lines have it."""
    run = trace.info.capture.run
    if run is not None and run.loop is not None:
        return [(run.loop.file, run.loop.last)]
    sources = (f.source for f in findings if f.owner == "user")
    return list(dict.fromkeys((s.file, s.line) for s in sources if s and s.exact))


class _Program:
    """The networks of one file, and what it does with them."""

    def __init__(self, tree: SourceTree) -> None:
        self._tree = tree
        modules, networks = Modules(tree), set[str]()
        for node in tree.nodes:
            if (method := matched("$network.$name(...)", node)) and method.name in _OF_MODULES:
                networks.add(dotted(method.network))
            elif isinstance(node, ast.Assign) and modules.makes(node.value, lambda name: False):
                networks.update(map(dotted, node.targets))
        self._networks = networks - {"", "self", "optimizer"}

    def surviving_output(self, line: int) -> _NameAt | None:
        """Return an output that a loop around a line keeps from round to round; None without one."""
        for loop in reversed([node for node in self._tree.nodes if isinstance(node, Loop) and line in lines_of(node)]):
            if any(name in self._networks for name, _ in _calls(loop)):
                outputs = self._outputs(loop)
                return _carried(loop, outputs) or self._stored(loop, outputs)
        return None

    def _outputs(self, loop: Loop) -> dict[str, int]:
        """Return the names that a loop gives last what a network returned, or what is in its memory, with the line."""
        outputs = dict[str, int]()
        for node in sorted(_assignments(loop), key=lambda node: node.lineno):
            for name in _given(node):
                outputs.pop(name, None)
                if self._is_output(node.value, outputs):
                    outputs[name] = node.lineno
        return outputs

    def _is_output(self, value: ast.expr, outputs: Container[str]) -> bool:
        """Return whether an expression is what a network's call returned, a part of it, or in the same memory."""
        if name := dotted(value):
            return name in outputs
        if isinstance(value, ast.Subscript | ast.Attribute):
            return self._is_output(value.value, outputs)
        method = matched("$tensor.$name(...)", value)
        if method and method.name in _SAME_MEMORY:
            return self._is_output(method.tensor, outputs)
        return isinstance(value, ast.Call) and dotted(value.func) in self._networks

    def _stored(self, loop: Loop, outputs: Container[str]) -> _NameAt | None:
        """Return a container that is filled with outputs, and that no round begins anew."""
        fresh = {name for node in _assignments(loop) for name in _given(node)}
        for node in walk_own(loop):
            put = matched("$container.$name(...)", node)
            container = dotted(put.container) if put and put.name in _STORES else ""
            given = node.args if isinstance(node, ast.Call) and container and container not in fresh else ()
            if any(self._is_output(value, outputs) for value in given):
                return container, node.lineno  # type: ignore[attr-defined]
        return None

    def inference(self) -> _NameAt | None:
        """Return a network that is trained and called in inference mode too, and the line of that call."""
        regions = [node for node in self._tree.nodes if any(map(_is_inference_mode, contexts_of(node)))]
        trained = [at for at in self._called_beside_backward(regions) if at[0] in self._networks]
        for name, line in (at for region in regions for at in _calls(region, ast.walk)):
            if any(other == name and self._is_one(name, line, at) for other, at in trained):
                return name, line
        return None

    def _called_beside_backward(self, regions: Sequence[ast.AST]) -> Iterator[_NameAt]:
        """Yield what functions that also run a backward pass call outside of these regions."""
        for scope in (self._tree.tree, *self._tree.functions):
            calls = list(_calls(scope))
            if any(name.endswith(".backward") for name, _ in calls):
                yield from (at for at in calls if not any(at[1] in lines_of(region) for region in regions))

    def _is_one(self, name: str, *lines: int) -> bool:
        """Return whether a name in two lines may be one network: not where functions each have it of their own.

        What one function has, another one has too if it is called there.
        """
        around = [[f for f in self._tree.functions if line in lines_of(f)] for line in lines]
        owners = [next((f for f in those if name in _local(f)), None) for those in around]
        owner = owners[0] or owners[1]
        if owner is None or None not in owners:
            return owners[0] is owners[1]
        inside = around[1 if owners[0] else 0][-1:]
        names = {function.rpartition(".")[2] for function, _ in _calls(owner, ast.walk)}
        return any(function.name in names for function in inside)


def _calls(node: ast.AST, walk: Callable[[ast.AST], Iterable[ast.AST]] = walk_own) -> Iterator[_NameAt]:
    return ((dotted(n.func) or f"?.{called(n)}", n.lineno) for n in walk(node) if isinstance(n, ast.Call))


def _assignments(node: ast.AST) -> Iterator[ast.Assign]:
    return (n for n in walk_own(node) if isinstance(n, ast.Assign))


def _given(node: ast.Assign) -> Iterator[str]:
    for target in node.targets:
        parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from filter(None, map(dotted, parts))


def _carried(loop: Loop, outputs: dict[str, int]) -> _NameAt | None:
    """Return an output that a round reads before it has one of its own, by a line above or its value."""
    uses = [node for node in walk_own(loop) if isinstance(node, ast.Name | ast.Attribute)]
    for name, line in outputs.items():
        first = min(n.lineno for n in uses if dotted(n) == name and isinstance(n.ctx, ast.Store))
        values = [node.value for node in _assignments(loop) if node.lineno == first]
        reads = [n for n in uses if n.lineno < first] + [n for value in values for n in walk_own(value)]
        if any(dotted(node) == name for node in reads):
            return name, line
    return None


def _local(function: ast.AST) -> frozenset[str]:
    nodes = (n for n in walk_own(function) if isinstance(n, ast.Assign))
    return frozenset(name for node in nodes for name in _given(node))


def _is_inference_mode(mode: ast.expr) -> bool:
    return called(mode) == "inference_mode" and not matched("$mode(False)", mode)
