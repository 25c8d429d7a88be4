"""Match a read-back inside an optimizer's step."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule import Match
from syncscan.model.finding import Confidence, Removal, Use
from syncscan.model.slice_names import is_optimizer_step

_BY_DESIGN = ("Adafactor", "ASGD", "LBFGS")


_OF_SCHEDULER = Match(variant="scheduler", removal=Removal.NOTHING, use=Use.STEERS, for_caller=True)


def match(call: Call) -> Match | None:
    if call.facts.direction == "HtoD" or not reads_back(call):
        return None
    if call.decided_in("torch/optim/lr_scheduler.py") and call.deciding_function == "step":
        return _OF_SCHEDULER
    scope = call.scope_that(is_optimizer_step)
    if not (scope or call.in_library("torch/optim")) or (call.in_closure and not _in_its_own_code(call, scope)):
        return None
    name = scope.removeprefix("Optimizer.step#").removesuffix(".step") or "the optimizer"
    return Match(
        variant="design" if name in _BY_DESIGN else "",
        values={"name": name},
        confidence=Confidence.HIGH if call.has_frames or not call.in_closure else Confidence.MEDIUM,
        removal=Removal.NOTHING,
    )


def _in_its_own_code(call: Call, scope: str) -> bool:
    """Return whether a read beside a closure's is the optimizer's; without frames, only LBFGS, which reads the loss."""
    if call.has_frames:
        return call.decided_in("torch/optim")
    return "LBFGS" in scope
