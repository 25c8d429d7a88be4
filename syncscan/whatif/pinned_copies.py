"""Estimate how much shorter a pinned copy would be on the device than a pageable one.

A copy of pageable memory goes through a staging buffer of the driver, at the speed of the host's memcpy; a pinned one
runs at the speed of the link (CUDA Best Practices Guide, "Pinned Memory").
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from syncscan.model.trace import NONE, Category, Trace

LINK = {9: 50.0, 8: 24.0, 7: 12.0}
"""Practical bytes per ns of a PCIe x16 link by compute capability: Hopper and newer have PCIe 5, Ampere 4, Volta 3."""
LARGE = 1_000_000
"""Bytes from which a pinned copy is long enough to measure the link."""


class Copies:
    """The copies that some calls of a trace launch, and the speed of its link.

    Args:
        trace: any trace.
        calls: rows of the calls in question.
    """

    def __init__(self, trace: Trace, calls: Sequence[int]) -> None:
        self.trace = trace
        rows = np.array(calls, np.int64)
        self._row = dict(zip(calls, trace.copies_of(rows).tolist(), strict=True))
        self._name = dict(zip(calls, trace.copy_names(rows), strict=True))
        self._speed: dict[str, float | None] = {}

    def whole(self, call: int) -> tuple[tuple[int, int], float] | None:
        """Return (device, stream) and length in ns of the copy to the host that this call launches, for a read-back."""
        row = self._row[call]
        if row == NONE or "DtoH" not in self._name[call]:
            return None
        s = self.trace.slices
        return (int(s.device[row]), int(s.stream[row])), float(s.dur[row])

    def saved(self, call: int) -> tuple[tuple[int, int], float] | None:
        """Return the (device, stream) of the pageable copy that this call launches, and what pinning saves, in ns."""
        row = self._row[call]
        if row == NONE:
            return None
        s, name = self.trace.slices, self.trace.name(row)
        if "Pageable" not in name or s.bytes[row] <= 0:
            return None
        speed = self._link(name.split()[1])
        pinned = float(s.bytes[row]) / speed if speed else float(s.dur[row])
        return (int(s.device[row]), int(s.stream[row])), max(0.0, float(s.dur[row]) - pinned)

    def _link(self, direction: str) -> float | None:
        """Return bytes per ns, from the trace's large pinned copies in this direction, else by device generation."""
        if direction not in self._speed:
            s = self.trace.slices
            copies = self.trace.where(lambda n: "Pinned" in n and n.split()[1:2] == [direction], Category.MEMCPY)
            copies = copies[(s.correlation[copies] != NONE) & (s.bytes[copies] >= LARGE)]
            speeds = s.bytes[copies] / np.maximum(1.0, s.dur[copies])
            self._speed[direction] = float(speeds.max()) if len(copies) else self._generation()
        return self._speed[direction]

    def _generation(self) -> float | None:
        capability = self.trace.info.compute_capability
        return None if capability is None else LINK.get(min(capability[0], max(LINK)))
