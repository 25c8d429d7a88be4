"""Correct device times of a linked Trace that are off by a constant."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from syncscan.facts.device_clock import device_clock
from syncscan.model.trace import DEVICE, Slices, Trace


def with_device_times(trace: Trace) -> Trace:
    """Return the trace with device work on the host's clock and a warning; unchanged if the clocks agree.

    Rows of the host don't move, since device work has tracks of its own.
    """
    shift = device_clock(trace).shift
    if shift is None:
        return trace
    s, of_device = trace.slices, trace.is_category(*DEVICE)
    ts = np.where(of_device, s.ts - shift, s.ts)
    order = np.lexsort((-s.dur, ts, s.track))
    if (order[~of_device] != np.flatnonzero(~of_device)).any():
        return trace
    columns = {name: getattr(s, name)[order] for name in Slices.__struct_fields__}
    was, to = ("late", "earlier") if shift > 0 else ("early", "later")
    warning = (
        f"Device times are about {abs(shift) / 1e3:.0f} µs {was} by the host's clock, and were shifted {to} by that "
        f"amount."
    )
    info = replace(trace.info, warnings=(*trace.info.warnings, warning))
    return replace(trace, info=info, slices=Slices(**{**columns, "ts": ts[order]}))


__all__ = ["with_device_times"]
