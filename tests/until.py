"""A wait for an event: it lasts as long as a busy machine takes, and fails only where the event never comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(happened: Callable[[], T], seconds: float = 120.0) -> T:
    """Return what a function answers as soon as it is true; it is asked again and again.

    Args:
        happened: looks for the event.
        seconds: the longest that a program that works takes on the busiest machine.
    """
    ends = time.monotonic() + seconds
    while not (answer := happened()):
        assert time.monotonic() < ends, "it never happened"
        time.sleep(0.01)
    return answer
