"""A recorded loop that fills pinned memory while the copy of the step before still runs."""

from __future__ import annotations

from tests.builder import TraceBuilder


def refilling(with_frames: bool) -> TraceBuilder:
    """A loop that fills a tensor and copies it to a busy device, in `load` of train.py."""
    t = TraceBuilder(with_stack=1) if with_frames else TraceBuilder()
    for start in t.steps(3, lasts=100):
        with t.scope("load", start + 50, start + 90):
            if with_frames:
                t.frame("/home/me/train.py(7): load", start + 55, start + 85)
            t.op("aten::fill_", start + 60, start + 65)
            t.launch("work", at=start + 66, lasts=500)
            with t.op("aten::to", start + 70, start + 80), t.op("aten::copy_", start + 71, start + 79):
                t.copy("Memcpy HtoD (Pinned -> Device)", at=start + 72, lasts=2)
    return t
