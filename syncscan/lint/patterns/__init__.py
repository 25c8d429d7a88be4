"""List the patterns in the order in which they are tried: the first match names an expression, special ones first."""

from __future__ import annotations

from syncscan.lint.pattern import Pattern
from syncscan.lint.patterns import (
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

PATTERNS: tuple[Pattern, ...] = (
    # truth values and shown values
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
    # intended waits, and settings that cause waits
    settings,
    synchronizes,
)

ANYWHERE: tuple[Pattern, ...] = (settings,)
"""Patterns that are also tried on code outside of loops and steps."""
