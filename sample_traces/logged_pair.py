"""The tutorial's programs for `syncscan prove`: the loss is read at each step, or summed on the device."""

from __future__ import annotations

from collections.abc import Callable

import torch

from syncscan.capture import logged_step

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def before() -> Callable[[], None]:
    """The step that reads its loss."""
    return logged_step.build(DEVICE)


def after() -> Callable[[], None]:
    """The step that sums it."""
    return logged_step.build(DEVICE, reads=False)
