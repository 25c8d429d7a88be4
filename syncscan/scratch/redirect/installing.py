"""Put stand-ins in the place of functions, wherever a module that is loaded already holds them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

_OWN = "syncscan.scratch"


class Replaced:
    """Functions that are replaced, until `restore`.

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
            found = self._by_id.get(id(original))
            if found is None or found[0] is not original:
                continue
            self._places.append((holder, name, value))
            setattr(holder, name, staticmethod(found[1]) if isinstance(holder, type) else found[1])


class WhenImported:
    """Calls a function with a module as soon as it is imported; at once if it is loaded already.

    Args:
        actions: by the module's name.
    """

    def __init__(self, actions: Mapping[str, Callable[[ModuleType], None]]) -> None:
        self._actions = dict(actions)
        for name in list(self._actions):
            if name in sys.modules:
                self._actions.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, self)

    def end(self) -> None:
        """Call none from here on."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module as the other finders do, and have its loader call the action at its end."""
        action = self._actions.get(name)  # whoever asks for a spec need not import the module
        if action is None:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = cast(Any, _Loader(spec.loader, action))
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
