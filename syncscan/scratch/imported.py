"""Changes to modules as soon as they are imported, without importing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

Replace = Callable[[Any, str, Any], None]
"""`setattr` that can be undone."""
Action = Callable[[ModuleType, Replace], None]


class WhenImported:
    """Calls a function with a module as soon as it is imported; at once if it is loaded already.

    Each action, by its module's name, makes its changes by the function that it is given, until `end`.
    """

    def __init__(self, actions: Mapping[str, Action]) -> None:
        self._actions = dict(actions)
        self._before: list[tuple[Any, str, Any]] = []
        for name in list(self._actions):
            if name in sys.modules:
                self._actions.pop(name)(sys.modules[name], self.replace)
        sys.meta_path.insert(0, self)

    def replace(self, holder: Any, name: str, value: Any) -> None:
        """Set an attribute until `end`."""
        self._before.append((holder, name, vars(holder).get(name, self)))
        setattr(holder, name, value)

    def end(self) -> None:
        """Call none from here on, and put everything back."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for holder, name, value in reversed(self._before):
            delattr(holder, name) if value is self else setattr(holder, name, value)
        self._before.clear()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module as the other finders do, and have its loader call the action at its end."""
        action = self._actions.get(name)  # whoever asks for a spec need not import the module
        if action is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = cast(Any, _Loader(spec.loader, lambda module: action(module, self.replace)))
                return spec
        return None


class _Loader:
    """A loader that calls a function with the module that it has loaded."""

    def __init__(self, loader: Any, action: Callable[[ModuleType], None]) -> None:
        self._loader, self._action = loader, action

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._action(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
