"""Deferred values, and the names that hold them."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable

import msgspec

from syncscan.fixing.program_file import Loop, Scope


class ContainerShape(enum.Enum):
    NUMBER = "number"
    LIST = "list"
    """A list of numbers."""
    DICT = "dict"
    """A dictionary whose values are numbers, some of them deferred."""
    ROWS = "rows"
    """A list of such dictionaries."""


class Taint(msgspec.Struct, frozen=True):
    shape: ContainerShape = ContainerShape.NUMBER
    types: frozenset[str] = frozenset()
    """Types of the numbers in the unchanged program: `float`, `int`, `bool`."""

    def holding(self, shape: ContainerShape) -> Taint:
        """Return a container of such numbers."""
        return Taint(shape, self.types)


def number(types: Iterable[str]) -> Taint:
    return Taint(ContainerShape.NUMBER, frozenset(types))


class Local(msgspec.Struct, frozen=True, eq=True):
    """A name of a function or of the module."""

    scope: Scope
    name: str

    def __hash__(self) -> int:
        return hash((id(self.scope), self.name))


class Origin:
    """Where a deferred number enters a function: the read itself, or a call that returns it.

    It could be read behind each of the loops `homes`, outermost first; None first where the function can leave that to
    its callers. `behind` is the origin that this one is a call of the function of.
    """

    def __init__(self, node: ast.expr, homes: list[Loop | None], behind: Origin | None) -> None:
        self.node = node
        self.homes = homes
        self.behind = behind

    @property
    def home(self) -> Loop | None:
        """The loop after which the number is read; None if the callers read it."""
        return self.homes[0]


class Stuck(Exception):
    """Raised where the host needs a deferred number; `why` ends a sentence: `decides what runs next`.

    With `shown`, the number is only written there, as in an f-string, which a tensor would do as well.
    """

    def __init__(self, node: ast.AST, why: str, origin: Origin | None = None, shown: bool = False) -> None:
        super().__init__(why)
        self.node, self.why, self.origin, self.shown = node, why, origin, shown
