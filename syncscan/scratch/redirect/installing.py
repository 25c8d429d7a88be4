"""Put stand-ins in the place of functions, wherever a module that is loaded already holds them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from syncscan.scratch.imported import Replace

_OWN = "syncscan.scratch"


def install(stand_ins: Mapping[Callable[..., Any], Callable[..., Any]], replace: Replace) -> None:
    """Replace functions by their identity.

    Args:
        stand_ins: by the function that each replaces.
        replace: sets an attribute.
    """
    by_id = {id(original): stand_in for original, stand_in in stand_ins.items()}
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)  # Python 3.10 keeps the functions there
    for holder in [module for module in modules if not module.__name__.startswith(_OWN)] + [accessor] * bool(accessor):
        for name, value in list(vars(holder).items()):
            stand_in = by_id.get(id(value.__func__ if type(value) is staticmethod else value))
            if stand_in is not None:  # isinstance would ask the value
                replace(holder, name, staticmethod(stand_in) if isinstance(holder, type) else stand_in)
