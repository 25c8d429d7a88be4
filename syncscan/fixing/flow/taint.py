"""Deferred values, and the names that hold them."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from syncscan.source.tree import Loop, Scope


class ContainerShape(enum.Enum):
    NUMBER = "number"
    LIST = "list"
    """A list of numbers."""
    DICT = "dict"
    """A dictionary whose values are numbers, some of them deferred."""
    ROWS = "rows"
    """A list of such dictionaries."""


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


class Taint(msgspec.Struct, frozen=True):
    origin: Origin
    types: frozenset[str]
    """Types of the numbers in the unchanged program: `float`, `int`, `bool`."""
    shape: ContainerShape = ContainerShape.NUMBER

    def within(self, shape: ContainerShape) -> Taint:
        """Return a container of such numbers."""
        return Taint(self.origin, self.types, shape)

    def number(self, types: Iterable[str] | None = None) -> Taint:
        """Return one such number, or one of other types."""
        return Taint(self.origin, self.types if types is None else frozenset(types))

    @property
    def is_integer(self) -> bool:
        return self.types <= {"int", "bool"}


class Local(NamedTuple):
    """A name of a function or of the module."""

    scope: Scope
    name: str


class Stuck(Exception):
    """Raised where the host needs a deferred number; `why` ends a sentence: `decides what runs next`."""

    def __init__(self, node: ast.AST, why: str, origin: Origin | None = None) -> None:
        super().__init__(why)
        self.node, self.why, self.origin = node, why, origin
