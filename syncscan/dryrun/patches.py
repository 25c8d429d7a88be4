"""Attributes of modules and classes are set for a while, and are the very same objects again afterwards."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """What was set, with what stood there before."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module or class, new or not."""
        self._before.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute where there is one: names come and go with torch's versions."""
        if hasattr(owner, name):
            self.set(owner, name, value)

    def item(self, mapping: dict[str, Any], key: str, value: Any) -> None:
        """Set an entry of a dict."""
        self._before.append((mapping, key, mapping.get(key, _MISSING)))
        mapping[key] = value

    def restore(self) -> None:
        """Put everything back, the last first."""
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
