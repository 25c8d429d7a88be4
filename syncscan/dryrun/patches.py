"""Set attributes of modules and classes for a while, and restore the same objects afterwards."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any


class Patches(ExitStack):
    """Changes that are restored at the end of the context, the last one first."""

    def set(self, owner: Any, name: str, value: Any) -> None:
        if name in vars(owner):
            self.callback(setattr, owner, name, vars(owner)[name])
        else:
            self.callback(delattr, owner, name)
        setattr(owner, name, value)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute if it exists; names depend on torch's version."""
        if hasattr(owner, name):
            self.set(owner, name, value)
