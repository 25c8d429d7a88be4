"""The rules, in the order they are asked: the first that fits names a sync point, so the special come before the general."""

from __future__ import annotations

from syncscan.detect.rule import Rule
from syncscan.detect.rules import explicit, unclassified

RULES: tuple[Rule, ...] = (explicit, unclassified)
