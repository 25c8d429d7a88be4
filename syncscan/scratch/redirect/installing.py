"""Put stand-ins in the place of functions, wherever a module that is loaded already holds them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

_OWN = "syncscan.scratch"


class Replaced:
    """PathFunctions that are replaced, until `restore`.

    Args:
        stand_ins: by the function that each replaces, by identity.
    """

    def __init__(self, stand_ins: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
        self._by_id = {id(original): (original, stand_in) for original, stand_in in stand_ins.items()}
        self._places: list[tuple[Any, str, Any]] = []
        for module in list(sys.modules.values()):
            if isinstance(module, ModuleType) and not module.__name__.startswith(_OWN):
                self._replace_in(module)
        accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)  # Python 3.10 keeps the functions there
        if accessor is not None:
            self._replace_in(accessor)

    def restore(self) -> None:
        """Put all of them back."""
        for holder, name, value in self._places:
            setattr(holder, name, value)
        self._places.clear()

    def _replace_in(self, holder: Any) -> None:
        for name, value in list(vars(holder).items()):
            original = value.__func__ if type(value) is staticmethod else value  # isinstance would ask the value
            replacement = self._by_id.get(id(original))
            if replacement is None or replacement[0] is not original:
                continue
            self._places.append((holder, name, value))
            setattr(holder, name, staticmethod(replacement[1]) if isinstance(holder, type) else replacement[1])
