"""The protocol of a shape: it looks at one expression and says which rule's sync it would be, or passes."""

from __future__ import annotations

import ast
from typing import Protocol

import msgspec

from syncscan.lint.evaluate import Evaluator
from syncscan.lint.names import argument, is_true
from syncscan.lint.places import Place
from syncscan.lint.values import Kind, Value
from syncscan.model.finding import Confidence


class Hit(msgspec.Struct, frozen=True):
    """What a shape says of the code that it matches."""

    rule: str
    """The id of the rule that would name this sync in a trace."""
    title: str
    """What waits for what, in a few words."""
    fix: str
    """What to write instead."""
    confidence: Confidence = Confidence.MEDIUM
    seen: str = ""
    """A further sentence about this very code."""
    seldom: bool = False
    """Whether it is likely to be meant, or rare: the severity is low then."""


class Site(msgspec.Struct, frozen=True):
    """One expression, or one question for a truth value, and what is known around it."""

    node: ast.expr
    evaluator: Evaluator
    place: Place
    """What makes it run in each step; false where nothing does."""
    in_loop: bool
    """Whether any loop of its own function is around it."""
    question: str = ""
    """Where Python asks the expression for its truth value: `if`, `while`, `assert`, `not`, `and`, `bool`, …"""
    shown_by: str = ""
    """What prints or logs the value of this expression: `print`, `f-string`, `add_scalar`; empty elsewhere."""
    timed: bool = False
    """Whether the function reads a clock or the time between two events."""

    def value(self, node: ast.expr | None) -> Value:
        """What an expression is taken for."""
        return self.evaluator.value(node)

    def torch(self, call: ast.Call) -> str:
        """What a call calls, if it is torch's, without `torch.`: `nn.functional.one_hot`."""
        return self.evaluator.names.torch(call.func)

    def method(self, *names: str) -> ast.expr | None:
        """The receiver, where the node is a call of a method of one of these names."""
        node = self.node
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in names:
            return None
        return None if self.torch(node) or self._is_module(node.func) else node.func.value

    def _is_module(self, function: ast.Attribute) -> bool:
        name = self.evaluator.names.of(function)
        return name.startswith(("numpy.", "math.", "jnp.", "jax.", "tf.", "tensorflow.", "pandas.", "pd."))

    def operand(self, *names: str) -> ast.expr | None:
        """The tensor that an op works on, called as `torch.op(x)` or as `x.op()`; None for any other call."""
        if not isinstance(self.node, ast.Call):
            return None
        if self.torch(self.node) in names:
            return argument(self.node, "input", 0)
        receiver = self.method(*names)
        return receiver if receiver is not None and self.value(receiver).kind is not Kind.EVENT else None

    def waits_for(self, *values: Value) -> bool:
        """Whether an op on these would wait here: one is a device tensor, as far as can be told, and it runs often."""
        if any(value.kind in (Kind.CPU, Kind.BATCH) for value in values):
            return False
        tensors = [v for v in values if v.kind is Kind.TENSOR]
        return bool(tensors) and (bool(self.place) or (self.in_loop and any(v.sure for v in tensors)))

    @property
    def asynchronous(self) -> bool:
        """Whether the call says `non_blocking=True`, or leaves that to a variable."""
        assert isinstance(self.node, ast.Call)
        given = argument(self.node, "non_blocking")
        return is_true(given) or (given is not None and not isinstance(given, ast.Constant))


class Shape(Protocol):
    """What a module in `lint/shapes/` provides; its docstring's first line says which code it finds."""

    @property
    def RULES(self) -> tuple[str, ...]:
        """Ids of the rules that its hits name."""

    @property
    def LOOKS_AT(self) -> tuple[type[ast.expr] | str, ...]:
        """What it is asked about: kinds of expressions; `question`, one for a truth value; `shown`, what is shown."""

    def find(self, site: Site) -> Hit | None:
        """What this code is, or None."""
        ...
