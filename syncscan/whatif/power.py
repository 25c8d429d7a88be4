"""From a trace's clocks and power to how much slower its kernels may run once the device has no pauses.

A chip that would draw more than its limit lowers its clock. Power grows with about the clock's 2.5th power (voltage
falls with it), so work that would draw P at full clock runs (P / limit) ** 0.4 times as long.
"""

from __future__ import annotations

import math

from syncscan.model.trace import Trace

UNKNOWN = 0.15
"""Taken where the trace says nothing of power: matrix products on an H200 at its limit run 13 to 17 % longer."""
MOST = 0.25
IDLE = 0.15
"""The part of its limit that a chip draws without work."""
EXPONENT = 0.4


def slowdown(trace: Trace, busy: float) -> float:
    """How much longer kernels may take on this device when it works without pause: 0.15 is 15 %.

    Args:
        trace: with `clocks` in capture's table: the power drawn in unprofiled steps, and the chip's limit, in W.
        busy: the part of those steps in which the device worked.
    """
    clocks = trace.info.capture.calibrated_clocks
    drawn, limit = clocks.power_w, clocks.power_limit_w
    if drawn is None or limit is None or not 0.0 < busy <= 1.0:
        return UNKNOWN
    idle = IDLE * limit
    full = idle + max(0.0, drawn - idle) / busy
    return min(max(math.pow(full / limit, EXPONENT) - 1.0, 0.0), MOST)
