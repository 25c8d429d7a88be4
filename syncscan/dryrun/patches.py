"""Set attributes of modules and classes for a while, and restore the same objects afterwards."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """Changes made so far, with the previous values."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module or class, new or not."""
        self._before.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute if it exists; names depend on torch's version."""
        if hasattr(owner, name):
            self.set(owner, name, value)

    def item(self, mapping: dict[str, Any], key: str, value: Any) -> None:
        """Set an entry of a dict."""
        self._before.append((mapping, key, mapping.get(key, _MISSING)))
        mapping[key] = value

    def restore(self) -> None:
        """Restore everything, the last change first."""
        while self._before:
            owner, name, before = self._before.pop()
            if isinstance(owner, dict):
                if before is _MISSING:
                    owner.pop(name, None)
                else:
                    owner[name] = before
            elif before is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
