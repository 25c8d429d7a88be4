"""List the patterns in the order in which they are tried: the first match names an expression, special ones first."""

from __future__ import annotations

from syncscan.lint.pattern import Pattern
from syncscan.lint.patterns import checks, copies, shapes

PATTERNS: tuple[Pattern, ...] = (
    # truth values and shown values
    copies.truth,
    copies.shown,
    # values that are read back
    copies.numbers,
    copies.tolist,
    copies.cpu,
    copies.comparisons,
    copies.contains,
    # shapes that depend on values
    shapes.masks,
    shapes.indices,
    shapes.sized_ops,
    shapes.number_arguments,
    # checks
    checks.checked_ops,
    checks.distributions,
    checks.scalers,
    checks.checkpoints,
    # copies to the device
    copies.constructors,
    copies.to_device,
    # intended waits, and settings that cause waits
    checks.settings,
    checks.synchronizes,
)

ANYWHERE: tuple[Pattern, ...] = (checks.settings,)
"""Patterns that are also tried on code outside of loops and steps."""
