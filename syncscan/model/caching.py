"""Memoize values derived from an immutable one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import msgspec

Made = TypeVar("Made")


class Caching(msgspec.Struct, frozen=True, dict=True):
    """Base for immutable values that memoize what is derived from them."""

    def cached(self, make: Callable[..., Made], *args: Any) -> Made:
        """Return the result of `make` for this value and others, computed once; it mustn't be modified."""
        key = make, *args
        if key not in self._made:
            self._made[key] = make(self, *args)
        result: Made = self._made[key]
        return result

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}


__all__ = ["Caching"]
