"""One file of the program, with what a run saw of its expressions."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from syncscan.fixing.messages import Entered, Observations, Observed, Tensor, WaitingLine
from syncscan.source.text import Text
from syncscan.source.tree import SourceTree, lines_of

NOTHING = Observations()
NUMBERS = frozenset({"int", "float", "bool"})
"""Types of Python's numbers."""
_BY_ANY_NAME = frozenset("locals globals exec eval".split())
"""Functions that may read or assign names that the source doesn't show."""


class File(SourceTree):
    """A file that ran, with the observations of a run of exactly this text, and that run's waits at its lines.

    `main` says that it is the script itself, whose module-level names no other file imports; `has_float64`, that each
    device that the program names has double precision.
    """

    def __init__(
        self,
        text: Text,
        observed: Observed,
        *,
        main: bool = False,
        places: Sequence[WaitingLine] = (),
        has_float64: bool = True,
    ) -> None:
        super().__init__(ast.parse(text.text))
        self.text = text
        self.main = main
        self.has_float64 = has_float64
        self.places = places
        self._numbers = {node: number for number, node in enumerate(self.nodes)}
        self._observed = observed

    def seen(self, node: ast.AST) -> Observations:
        """Return what was seen of an expression; of a literal nothing, as its text tells all."""
        return self._observed.seen.get(self._numbers[node], NOTHING)

    def entered(self, node: ast.AST) -> Entered:
        return self._observed.entered.get(self._numbers[node], Entered())

    def ran_inside(self, function: ast.AST, loop: ast.AST) -> bool:
        return self._numbers[loop] in self.entered(function).inside

    def is_steady(self, node: ast.expr, loop: ast.AST) -> bool:
        """Return whether each run of a loop saw one unchanged object in an expression and in each of its parts."""
        parts = (n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript))
        return not any(self._numbers[loop] in self.seen(part).changes_in for part in parts)

    def own_waits(self, node: ast.AST) -> int:
        """Return how often the host waited for an expression or assignment itself, without its parts."""
        return self.seen(node).waits - sum(self._waits_inside(child) for child in ast.iter_child_nodes(node))

    def _waits_inside(self, node: ast.AST) -> int:
        own = self._observed.seen.get(self._numbers[node])
        if own is not None:
            return own.waits
        if isinstance(node, ast.Lambda):
            return 0
        return sum(self._waits_inside(child) for child in ast.iter_child_nodes(node))

    def waits_for(self, node: ast.AST, words: str) -> int:
        """Return how often the lines of a node waited for what the advice with these words avoids."""
        return sum(p.count for p in self.places if p.line in lines_of(node) and words in p.advice)

    def waiting_for(self, words: str) -> list[ast.stmt | ast.expr]:
        """Return the statements that waited for what the advice with these words avoids; of a loop what it is over."""
        lines = sorted({place.line for place in self.places if words in place.advice})
        statements = filter(None, map(self.statement_at, lines))
        return [node.iter if isinstance(node, ast.For) else node for node in statements]

    def types(self, node: ast.expr) -> set[str]:
        """Return the types of an expression's values; empty where it never ran."""
        if isinstance(node, ast.Constant):
            return {type(node.value).__name__}
        return set(self.seen(node).types)

    def tensors(self, node: ast.expr) -> tuple[Tensor, ...]:
        """Return the kinds of tensors that an expression gave; empty where it gave something else too, or never ran."""
        seen = self.seen(node)
        return tuple(seen.tensors) if seen.types == ["torch.Tensor"] else ()

    def device_tensor(self, node: ast.expr) -> Tensor | None:
        """Return the kind of tensor that an expression always gave, where that lay on the device; None for others."""
        tensors = self.tensors(node)
        if not tensors or not all(t.on_device for t in tensors):
            return None
        first = tensors[0]
        return first if all((t.dtype, t.dims) == (first.dtype, first.dims) for t in tensors) else None

    def is_number(self, node: ast.expr) -> bool:
        """Return whether an expression always was a Python number."""
        types = self.types(node)
        return bool(types) and types <= NUMBERS

    def hides_names(self) -> bool:
        """Return whether the file may reach its names without writing them: by `locals()`, `exec()`, `vars()`."""
        return any(isinstance(n, ast.Name) and (n.id in _BY_ANY_NAME or self._lists_names(n)) for n in self.nodes)

    def _lists_names(self, name: ast.Name) -> bool:
        """Return whether a name is `vars` without an object of its own: of an object it gives only the attributes."""
        call = self.parents[name]
        if name.id != "vars":
            return False
        if not isinstance(call, ast.Call) or call.func is not name or len(call.args) != 1:
            return True
        plain = isinstance(call.args[0], ast.Name | ast.Attribute)
        return not plain or "module" in self.types(call.args[0])


_APPLE = re.compile(rb"""["']mps(:\d+)?["']|\bmps\b\.|\.mps\b|\baccelerator\.current_accelerator\b""")


def names_apple(path: str) -> bool:
    """Return whether a file names Apple's device, which has no double precision: `mps`, or whatever there is."""
    try:
        return _APPLE.search(Path(path).read_bytes()) is not None
    except OSError:  # the name of code that is in no file
        return False
