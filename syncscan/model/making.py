"""From something that never changes to what is made of it: made once, for everyone who asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import msgspec

Made = TypeVar("Made")


class Making(msgspec.Struct, frozen=True, dict=True):
    """What keeps all that is made of it for as long as it is there itself."""

    def kept(self, make: Callable[[Any], Made]) -> Made:
        """What this function makes of it; asked for once, so what it makes mustn't be changed."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    @cached_property
    def _made(self) -> dict[Any, Any]:
        return {}


__all__ = ["Making"]
