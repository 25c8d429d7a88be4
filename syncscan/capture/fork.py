"""Undo hooks in a forked child before it does anything else.

A DataLoader's worker inherits the process with its callbacks, patches and torch's profiler switched on.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_actions: list[Callable[[], None]] = []


def in_child(action: Callable[[], None]) -> Callable[[], None]:
    """Call `action` in each child that is forked from now on; return a function that calls it off.

    What Python does at a fork can't be unregistered: a loop over nothing stays.
    """
    if hasattr(os, "register_at_fork") and not _registered:
        os.register_at_fork(after_in_child=_act)
        _registered.append(True)
    _actions.append(action)
    return lambda: _actions.remove(action) if action in _actions else None


_registered: list[bool] = []


def _act() -> None:
    """Call the actions, the last first; what they register in turn is for the child's own children."""
    actions, _actions[:] = _actions[::-1], []
    for action in actions:
        action()
