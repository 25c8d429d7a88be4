"""From a linked Trace whose device times are off by a constant to the same with these times taken back."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from syncscan.facts.device_clock import device_clock
from syncscan.model.trace import DEVICE, Slices, Trace


def with_device_times(trace: Trace) -> Trace:
    """The trace with its device work where the host's clock has it, and a warning; as it is where nothing is off.

    Rows of the host stay where they are: the work of a device lies on tracks of its own.
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
        f"Device times are about {abs(shift) / 1e3:.0f} µs {was} by the host's clock: all are taken as so much {to}."
    )
    info = replace(trace.info, warnings=(*trace.info.warnings, warning))
    return replace(trace, info=info, slices=Slices(**{**columns, "ts": ts[order]}))


__all__ = ["with_device_times"]
