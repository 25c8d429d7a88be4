"""A function goes in; torch calls it whenever the step of an optimizer has returned."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def after_steps(call: Callable[[Any], None]) -> Iterator[None]:
    """While this is open, `call` is given each optimizer that has made a step."""
    register = importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook
    hook = register(lambda optimizer, args, kwargs: call(optimizer))
    try:
        yield
    finally:
        hook.remove()
