"""Define what a pattern is: it looks at an expression and says which rule's sync it would be, or passes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import msgspec

from syncscan.lint.contexts import NOWHERE, CodeContext
from syncscan.lint.evaluate import Evaluator
from syncscan.lint.values import Value, ValueKind
from syncscan.model.finding import Confidence
from syncscan.source.code_pattern import argument, constant, matched


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


class Around(msgspec.Struct, frozen=True):
    """Context of a statement: the function, place, loops and conditions around it."""

    function: str = ""
    place: CodeContext = NOWHERE
    loops: int = 0
    scope: tuple[str, ...] = ()
    guard: str = ""
    """The condition that lets it run seldom, as it is written; empty without."""
    allowed: str = ""
    """The reason of the allowed block around it."""
    cold: bool = False
    """Whether it runs on no device, or only where something went wrong."""
    timed: bool = False
    """Whether the function reads a clock or the time between two events."""

    @property
    def words(self) -> str:
        """The place in words; empty where nothing says that it runs often."""
        return self.place.said or ("a loop" if self.loops else "")


class LintSite(msgspec.Struct, frozen=True):
    """An expression, or a question for a truth value, with what is known around it."""

    node: ast.expr
    evaluator: Evaluator
    around: Around
    question: str = ""
    """Where Python takes the expression's truth value: `if`, `while`, `assert`, `not`, `and`, `bool`, …"""
    shown_by: str = ""
    """The function that prints or logs this expression: `print`, `f-string`, `add_scalar`; empty elsewhere."""

    @property
    def place(self) -> CodeContext:
        """The reason that it runs in each step; empty without one."""
        return self.around.place

    @property
    def call(self) -> ast.Call:
        """The expression, for a pattern that looks at calls alone."""
        assert isinstance(self.node, ast.Call)
        return self.node

    @property
    def often(self) -> bool:
        """Whether it runs in each step, or in a loop."""
        return bool(self.place or self.around.loops)

    def value(self, node: ast.expr | None) -> Value:
        """Return the kind of value of an expression."""
        return self.evaluator.value(node)

    def torch(self, call: ast.Call) -> str:
        """Return the name of a called torch function without `torch.`, such as `nn.functional.one_hot`."""
        return self.evaluator.names.torch_name(call.func)

    def matched(self, pattern: str) -> SimpleNamespace | None:
        """Return what the variables of a code pattern stand for; a method's `$x` for no module."""
        match, called = matched(pattern, self.node, self.evaluator.names.full_name), getattr(self.node, "func", None)
        module = called.value if isinstance(called, ast.Attribute) and self._is_of_module(called) else None
        return None if match and module and vars(match).get("x") is module else match

    def method(self, *names: str) -> ast.expr | None:
        """Return the receiver if the node is a call of a method with one of these names."""
        called = getattr(self.node, "func", None)
        if not isinstance(called, ast.Attribute) or called.attr not in names or self._is_of_module(called):
            return None
        return called.value

    def _is_of_module(self, function: ast.Attribute) -> bool:
        name = self.evaluator.names.full_name(function)
        modules = ("torch.", "numpy.", "math.", "jnp.", "jax.", "tf.", "tensorflow.", "pandas.", "pd.")
        return name.startswith(modules)

    def operand(self, *names: str) -> ast.expr | None:
        """Return the tensor that an op works on, called as `torch.op(x)` or `x.op()`; None for any other call."""
        if self.torch(self.call) in names:
            return argument(self.call, "input", 0)
        receiver = self.method(*names)
        return receiver if receiver is not None and self.value(receiver).kind is not ValueKind.EVENT else None

    def waits_for(self, *values: Value) -> bool:
        """Return whether an op on these would wait: one is a device tensor as far as is known, and it runs often."""
        if any(value.kind in (ValueKind.CPU, ValueKind.BATCH) for value in values):
            return False
        tensors = [v for v in values if v.kind is ValueKind.TENSOR]
        sure = self.place or (self.around.loops and any(v.sure for v in tensors))
        return bool(tensors and sure)

    def may_wait_for(self, value: Value) -> bool:
        """Return whether an op that only tensors have may wait: nothing is known of it, and it runs in each step."""
        return bool(self.place) and value.kind in (ValueKind.UNKNOWN, ValueKind.OUTPUT)

    @property
    def asynchronous(self) -> bool:
        """Whether the call passes `non_blocking=True` or a variable for it."""
        given = argument(self.call, "non_blocking")
        return constant(given) is True or (given is not None and not isinstance(given, ast.Constant))


class Pattern(NamedTuple):
    """A function that says what an expression is, or None; its docstring's first line shows the code that it finds."""

    find: Callable[[LintSite], Hit | None]
    looks_at: type[ast.expr] | str
    """Kind of expressions to look at; `question` for truth values, `shown` for shown values."""
    rules: tuple[str, ...]
    """Ids of the rules that its hits name."""


def pattern(looks_at: type[ast.expr] | str, rules: str) -> Callable[[Callable[[LintSite], Hit | None]], Pattern]:
    """Make a pattern of a function."""
    return lambda find: Pattern(find, looks_at, tuple(rules.split()))
