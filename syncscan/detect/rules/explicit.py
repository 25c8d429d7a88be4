"""An explicit synchronise of device, stream or event.

What it finds: `torch.cuda.synchronize()`, `Stream.synchronize()` and `Event.synchronize()`.
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis, Removal

ID = "explicit-sync"
NAME = "Explicit synchronise"


def match(call: Call) -> Diagnosis | None:
    """Any synchronise without an op around it."""
    if call.ops or len(call.rows) > 1 or "Synchronize" not in call.api:
        return None
    return Diagnosis(
        rule=ID,
        name=NAME,
        cause=Cause.EXPLICIT,
        title=f"{call.api} in the step",
        why="The program asks to wait for the device.",
        fix="Remove it from the loop; time with events that are read after the loop.",
        when_fine="Around a measurement, outside the training loop.",
        removal=Removal.NOTHING,
    )
