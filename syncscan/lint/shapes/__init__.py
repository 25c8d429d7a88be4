"""The shapes in the order they are asked: the first that knows an expression names it, so special ones come first."""

from __future__ import annotations

from syncscan.lint.shape import Shape
from syncscan.lint.shapes import (
    checked_ops,
    checkpoints,
    comparisons,
    constructors,
    contains,
    cpu,
    distributions,
    indices,
    masks,
    number_arguments,
    numbers,
    scalers,
    settings,
    shown,
    sized_ops,
    synchronizes,
    to_device,
    tolist,
    truth,
)

SHAPES: tuple[Shape, ...] = (
    # what a value is asked for
    truth,
    shown,
    # values that are read back
    numbers,
    tolist,
    cpu,
    comparisons,
    contains,
    # shapes that depend on values
    masks,
    indices,
    sized_ops,
    number_arguments,
    checked_ops,
    distributions,
    scalers,
    checkpoints,
    # copies to the device
    constructors,
    to_device,
    # waits that are meant, and what makes others wait
    settings,
    synchronizes,
)

ANYWHERE: tuple[Shape, ...] = (settings,)
"""Those that are asked about code outside of loops and steps too."""
