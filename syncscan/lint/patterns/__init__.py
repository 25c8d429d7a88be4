"""List the patterns in the order in which they are tried: the first match names an expression, special ones first."""

from __future__ import annotations

from syncscan.lint.pattern import Pattern
from syncscan.lint.patterns import checks, copies, read_backs, shapes, waits

PATTERNS: tuple[Pattern, ...] = (
    # truth values and shown values
    read_backs.truth,
    read_backs.shown,
    # values that are read back
    read_backs.numbers,
    read_backs.tolist,
    read_backs.cpu,
    read_backs.comparisons,
    read_backs.contains,
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
    waits.settings,
    waits.synchronizes,
)

ANYWHERE: tuple[Pattern, ...] = (waits.settings,)
"""Patterns that are also tried on code outside of loops and steps."""
