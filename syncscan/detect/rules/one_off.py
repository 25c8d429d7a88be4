"""Match a wait inside code that runs once, or a library's first call."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Confidence, Removal
from syncscan.model.runtime_calls import allocates, frees

_PACKAGES = {
    "torch/cuda/graphs.py": ("capturing a CUDA graph", Cause.EXPLICIT),
    "torch/_inductor": ("torch.compile's benchmarking", Cause.INIT),
    "triton/runtime/autotuner.py": ("tuning a kernel", Cause.INIT),
}
_LOADING = "torch/serialization.py"


def match(call: Call) -> Match | None:
    if _sets_up(call):
        return Match(
            variant="setup",
            values={"api": call.facts.apis[0]},
            confidence=Confidence.MEDIUM,
            intended=True,
            removal=Removal.NOTHING,
        )
    place, cause = _place(call)
    if not place or (call.in_library(_LOADING) and call.facts.direction == "DtoH"):
        return None
    return Match(
        values={"place": place},
        cause=cause,
        for_caller=True,
        removal=Removal.NOTHING,
    )


def _sets_up(call: Call) -> bool:
    """Return whether a library creates its handles here, and not torch's allocator gives back what it has."""
    idle = not call.facts.waited and frees(call.facts.apis[0])
    return idle and call.first_run and not allocates(call.call_before)


def _place(call: Call) -> tuple[str, Cause]:
    if call.in_library(*_PACKAGES):
        return next(place for package, place in _PACKAGES.items() if call.in_library(package))
    if call.in_library_function("load_state_dict", "_load_from_state_dict"):
        return "loading a state dict", Cause.INIT
    return ("loading a checkpoint", Cause.INIT) if call.in_library(_LOADING) else ("", Cause.INIT)
