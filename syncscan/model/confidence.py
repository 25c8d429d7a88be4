"""How certain a statement is."""

from __future__ import annotations

import enum


class Confidence(str, enum.Enum):
    """How certain the attribution is."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
