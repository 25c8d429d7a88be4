"""Match a wait in one of the places of the table, or of a distribution that Pyro makes."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal, Use

_OWN_LOSS = (
    "No option avoids this, and Trace_ELBO().differentiable_loss also reads. For reparametrized guides, write the "
    "loss: guide_trace = pyro.poutine.trace(guide).get_trace(x); model_trace = "
    "pyro.poutine.trace(pyro.poutine.replay(model, trace=guide_trace)).get_trace(x); loss = "
    "guide_trace.log_prob_sum() - model_trace.log_prob_sum(). SVI(model, guide, optim, loss=f) then reads once; "
    "a torch optimizer not at all."
)

_PLACES = (
    # 1.9, pyro/infer/util.py, torch_item: `x.item()`; trace_elbo.py, _differentiable_loss_particle:
    # `torch_item(site["log_prob_sum"])` for each sample site; svi.py, step: `torch_item(loss)`
    LibraryPlace(
        file="pyro/infer/util.py",
        functions=("torch_item",),
        title="SVI reads the loss as a number, once for each sample site",
        fix=_OWN_LOSS,
        use=Use.SHOWN,
    ),
    # 1.9, pyro/poutine/trace_struct.py, log_prob_sum and its kin: `if is_validation_enabled(): warn_if_nan(…)`
    LibraryPlace(
        file="pyro/util.py",
        within="pyro/poutine",
        title="Pyro checks whether a log probability is NaN or infinite",
        fix="pyro.enable_validation(False) once the model works: a NaN then shows in the loss alone.",
        cause=Cause.CHECK,
        use=Use.SHOWN,
    ),
    # 1.9, pyro/util.py, torch_isnan: `torch.isnan(x).any()`, which warn_if_nan asks, in backward too
    LibraryPlace(
        file="pyro/util.py",
        functions=("torch_isnan", "torch_isinf", "warn_if_nan", "warn_if_inf"),
        title="Pyro checks whether the loss is NaN",
        fix="pyro.enable_validation(False) turns off the checks of sites; your own loss avoids this one: "
        "guide_trace.log_prob_sum() - model_trace.log_prob_sum() of two traces, for reparametrized guides.",
        cause=Cause.CHECK,
        use=Use.SHOWN,
    ),
)


def match(call: Call) -> Match | None:
    if call.in_library("pyro") and call.in_library("torch/distributions"):
        return Match(
            variant="distribution",
            removal=Removal.NOTHING,
            cause=Cause.CHECK,
            for_caller=True,
        )
    return match_at(call, _PLACES)
