"""Estimate how much slower kernels may run once the device has no pauses, from the trace's clocks and power.

A chip that would exceed its power limit lowers its clock. Power grows with about the 2.5th power of the clock (voltage
falls with it), so work that would draw P at full clock takes (P / limit) ** 0.4 times as long.
"""

from __future__ import annotations

import math

from syncscan.model.trace import Trace

UNKNOWN = 0.15
"""Slowdown if the trace has no power data: matrix products on an H200 at its limit take 13 to 17 % longer."""
MOST = 0.25
IDLE = 0.15
"""Part of its limit that a chip draws without work."""
EXPONENT = 0.4


def slowdown(trace: Trace, busy: float) -> float:
    """Return how much longer kernels may take on this device if it works without pause: 0.15 is 15 %.

    Args:
        trace: trace with `clocks` in capture's table: power drawn in unprofiled steps, and the chip's limit, in W.
        busy: part of those steps in which the device worked.
    """
    clocks = trace.info.capture.calibrated_clocks
    drawn, limit = clocks.power_w, clocks.power_limit_w
    if drawn is None or limit is None or not 0.0 < busy <= 1.0:
        return UNKNOWN
    idle = IDLE * limit
    full = idle + max(0.0, drawn - idle) / busy
    return min(max(math.pow(full / limit, EXPONENT) - 1.0, 0.0), MOST)
