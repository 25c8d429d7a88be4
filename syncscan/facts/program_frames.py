"""Name the program's frames of a stack, and the module around them, as traces store them."""

from __future__ import annotations

from typing import Any

from syncscan.model.libraries import only_starts

Frame = tuple[str, int, str]
"""File, line and function."""

INNERMOST, OUTERMOST = 48, 16
"""Frames kept of a deeper stack: the innermost show what waits, the outermost how the program got there."""


def shortened(stack: list[Frame]) -> list[Frame]:
    """Return a stack, innermost frame first, without the frames that started Python and the middle of a deep one."""
    while stack and only_starts(stack[-1][0]):
        stack.pop()
    return stack if len(stack) <= INNERMOST + OUTERMOST else stack[:INNERMOST] + stack[-OUTERMOST:]


class ModulePaths:
    """Names modules by their path below the outermost module that was called around them."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[Any, dict[int, str]]] = {}

    def __call__(self, root: Any, module: Any) -> str:
        """Return the outermost module's class and the names below it; the module's own class without such a path."""
        if id(root) not in self._names:
            self._names[id(root)] = root, {id(child): name for name, child in root.named_modules()}
        name = self._names[id(root)][1].get(id(module))
        if name is None:
            return type(module).__name__
        return "/".join([type(root).__name__, *name.split(".")] if name else [type(root).__name__])
