"""Where torch doesn't call back at a synchronize, the lines come from its debug mode's warnings, by their order."""

from __future__ import annotations

from typing import Any

from syncscan.attribute import attribute
from syncscan.detect import detect
from syncscan.model.finding import Source
from tests.builder import MAIN, TraceBuilder

FRAMES = [["train.py", 7, "loss"], ["train.py", 9, "log"], ["torch/autograd/graph.py", 800, "_engine_run_backward"]]


def warned(*stacks: int) -> dict[str, Any]:
    return {
        "lines": {
            "source": "warnings",
            "frames": FRAMES,
            "stacks": [[0], [1], [2]],
            "warned": [[MAIN, k] for k in stacks],
        }
    }


def sources(metadata: dict[str, Any]) -> list[Source | None]:
    t = TraceBuilder(syncscan=metadata)
    for start in t.steps(2, lasts=1000):
        t.sync("aten::nonzero", at=start + 10, wait=100)
        t.sync("aten::item", at=start + 300, wait=100)
        t.synchronize(at=start + 600)
    trace = t.trace()
    points, _ = detect(trace)
    return [place.source for place in attribute(trace, points)]


def test_the_order_tells_the_line() -> None:
    """As many warnings as calls that warn: each gets its line, inexact; a device synchronize has none."""
    loss, log = Source("train.py", 7, "loss", False, (7,)), Source("train.py", 9, "log", False, (9,))
    assert sources(warned(0, 1, 2)) == [loss, log, None] * 2


def test_another_number_tells_nothing() -> None:
    """Where a step made more such calls than the debug mode warned of, no line is claimed."""
    assert sources(warned(0)) == [None] * 6
