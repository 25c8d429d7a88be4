"""Memoize values derived from an immutable one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import msgspec

Made = TypeVar("Made")


class Caching(msgspec.Struct, frozen=True, dict=True):
    """Base for immutable values that memoize what is derived from them."""

    def cached(self, make: Callable[[Any], Made]) -> Made:
        """Return the result of `make` for this value, computed once; it mustn't be modified."""
        if make not in self._made:
            self._made[make] = make(self)
        result: Made = self._made[make]
        return result

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}


__all__ = ["Caching"]
