"""A wait that no other rule knows.

What it finds: A call that can wait for the device, for a reason that the trace doesn't tell.
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Confidence, Diagnosis

ID = "unclassified"
NAME = "Unclassified wait"


def match(call: Call) -> Diagnosis:
    """Always a diagnosis: it shows the chain of ops and calls, and claims no cause."""
    chain = " > ".join((*call.ops, *call.apis))
    return Diagnosis(
        rule=ID,
        name=NAME,
        cause=Cause.UNKNOWN,
        title=f"{call.api} waits for the device",
        why=f"The host waits in {chain}.",
        fix="Look at the chain and the frames around it; record with stacks for the line.",
        when_fine="When the value is needed on the host at this point.",
        confidence=Confidence.LOW,
    )
