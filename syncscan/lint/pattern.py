"""Define the protocol of patterns: one looks at an expression and says which rule's sync it would be, or passes."""

from __future__ import annotations

import ast
from typing import Protocol

import msgspec

from syncscan.lint.contexts import CodeContext
from syncscan.lint.evaluate import Evaluator
from syncscan.lint.imported_names import argument, is_true
from syncscan.lint.values import Value, ValueKind
from syncscan.model.finding import Confidence


class Hit(msgspec.Struct, frozen=True):
    """A pattern's statement about the code that it matches."""

    rule: str
    """The id of the rule that would name this sync in a trace."""
    title: str
    """A few words on what waits for what."""
    fix: str
    """Text on what to write instead."""
    confidence: Confidence = Confidence.MEDIUM
    seen: str = ""
    """A further sentence about this code."""
    seldom: bool = False
    """Whether it is likely intended, or rare, so that the severity is low."""


class LintSite(msgspec.Struct, frozen=True):
    """An expression, or a question for a truth value, with what is known around it."""

    node: ast.expr
    evaluator: Evaluator
    place: CodeContext
    """The reason that it runs in each step; empty without one."""
    in_loop: bool
    """Whether any loop of its own function is around it."""
    question: str = ""
    """Where Python takes the expression's truth value: `if`, `while`, `assert`, `not`, `and`, `bool`, …"""
    shown_by: str = ""
    """The function that prints or logs this expression: `print`, `f-string`, `add_scalar`; empty elsewhere."""
    timed: bool = False
    """Whether the function reads a clock or the time between two events."""

    def value(self, node: ast.expr | None) -> Value:
        """Return the kind of value of an expression."""
        return self.evaluator.value(node)

    def torch(self, call: ast.Call) -> str:
        """Return the name of a called torch function without `torch.`, such as `nn.functional.one_hot`."""
        return self.evaluator.names.torch(call.func)

    def method(self, *names: str) -> ast.expr | None:
        """Return the receiver if the node is a call of a method with one of these names."""
        node = self.node
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in names:
            return None
        return None if self.torch(node) or self._is_module(node.func) else node.func.value

    def _is_module(self, function: ast.Attribute) -> bool:
        name = self.evaluator.names.of(function)
        return name.startswith(("numpy.", "math.", "jnp.", "jax.", "tf.", "tensorflow.", "pandas.", "pd."))

    def operand(self, *names: str) -> ast.expr | None:
        """Return the tensor that an op works on, called as `torch.op(x)` or `x.op()`; None for any other call."""
        if not isinstance(self.node, ast.Call):
            return None
        if self.torch(self.node) in names:
            return argument(self.node, "input", 0)
        receiver = self.method(*names)
        return receiver if receiver is not None and self.value(receiver).kind is not ValueKind.EVENT else None

    def waits_for(self, *values: Value) -> bool:
        """Return whether an op on these would wait: one is a device tensor as far as is known, and it runs often."""
        if any(value.kind in (ValueKind.CPU, ValueKind.BATCH) for value in values):
            return False
        tensors = [v for v in values if v.kind is ValueKind.TENSOR]
        return bool(tensors) and (bool(self.place) or (self.in_loop and any(v.sure for v in tensors)))

    @property
    def asynchronous(self) -> bool:
        """Whether the call passes `non_blocking=True` or a variable for it."""
        assert isinstance(self.node, ast.Call)
        given = argument(self.node, "non_blocking")
        return is_true(given) or (given is not None and not isinstance(given, ast.Constant))


class Pattern(Protocol):
    """Members of a module in `lint/patterns/`; its docstring's first line names the code that it finds."""

    @property
    def RULES(self) -> tuple[str, ...]:
        """Ids of the rules that its hits name."""

    @property
    def LOOKS_AT(self) -> tuple[type[ast.expr] | str, ...]:
        """Kinds of expressions to look at; `question` for truth values, `shown` for shown values."""

    def find(self, site: LintSite) -> Hit | None:
        """Return what this code is, or None."""
        ...
