"""Call a function whenever the step of an optimizer has returned."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def after_steps(call: Callable[[Any], None]) -> Iterator[None]:
    """Call `call` with each optimizer that has made a step, while this is open."""
    register = importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook
    hook = register(lambda optimizer, args, kwargs: call(optimizer))
    try:
        yield
    finally:
        hook.remove()
