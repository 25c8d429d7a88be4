"""Values that are read only for a check, and the states that a checkpoint reads."""

from __future__ import annotations

import ast
import re

from syncscan.lint.pattern import Hit, LintSite, pattern
from syncscan.lint.values import ValueKind
from syncscan.source.names import argument, constant, key, splats

_LINALG = {f"linalg.{name}": f"{name}_ex" for name in ("inv", "solve", "cholesky", "lu_factor", "ldl_factor")}
_LINALG |= {"inverse": "inv_ex", "cholesky": "cholesky_ex"}
"""Functions of torch → those of `torch.linalg` that don't check."""
_OTHERS = {"svd", "pinverse"} | {
    f"linalg.{name}" for name in "eigh svd pinv matrix_rank lstsq eig svdvals eigvalsh eigvals".split()
}


@pattern(ast.Call, rules="linalg-check clip-grad argument-check ctc-loss")
def checked_ops(site: LintSite) -> Hit | None:
    """Match `torch.linalg.inv(x)`, `clip_grad_norm_(…, error_if_nonfinite=True)`: a value is read only for a check."""
    call, name = site.call, site.torch(site.call)
    checks = constant(argument(call, "error_if_nonfinite")) is True
    if name.rpartition(".")[2] in ("clip_grad_norm_", "get_total_norm") and checks:
        fix = "Leave error_if_nonfinite at False and look at the norm every N steps."
        return Hit("clip-grad", "clipping waits to check whether the norm is finite", fix)
    if name in ("cov", "corrcoef", "istft") and site.waits_for(site.value(argument(call, "input", 0))):
        return Hit("argument-check", f"{name} reads a value back to check its arguments", "Compute it by hand.")
    if name == "nn.functional.ctc_loss":
        lengths = site.value(argument(call, "input_lengths", 2)), site.value(argument(call, "target_lengths", 3))
        waits = site.waits_for(*(value for value in lengths if value.kind is not ValueKind.CPU))
        title = "ctc_loss copies its lengths to the host"
        return Hit("ctc-loss", title, "Pass lists or CPU tensors.") if waits else None
    return _linalg(site, name) if name in _LINALG or name in _OTHERS else None


def _linalg(site: LintSite, name: str) -> Hit | None:
    value = site.value(argument(site.call, "input", 0) or argument(site.call, "A", 0))
    if value.kind is ValueKind.UNKNOWN and site.place:
        value = site.value(site.call)
    if splats(site.call) or not site.waits_for(value):
        return None
    fix = "Call it less often, or batch the calls."
    if name in _LINALG:
        fix = f"torch.linalg.{_LINALG[name]}(…) doesn't check; it also returns info."
    return Hit("linalg-check", f"linalg.{name.removeprefix('linalg.')} waits for its error flag", fix)


@pattern(ast.Call, rules="distribution-args")
def distributions(site: LintSite) -> Hit | None:
    """Match `Normal(mean, std)`, `dist.log_prob(x)`: arguments are checked on the host."""
    call = site.call
    values = [site.value(value) for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    runs_often = site.place or site.waits_for(*values)
    constructs = site.value(call).kind is ValueKind.DISTRIBUTION and not all(value.on_host for value in values)
    of = site.method("log_prob", "cdf", "icdf")
    evaluates = of is not None and site.value(of).kind is ValueKind.DISTRIBUTION
    if not (constructs and runs_often) and not (evaluates and site.place):
        return None
    return Hit(
        "distribution-args",
        f"a distribution waits to validate {'its arguments' if constructs else 'the value'}",
        "Pass validate_args=False once the model works, or Distribution.set_default_validate_args(False).",
    )


_SCALER = re.compile(r"(^|[._])(grad_?|amp_?)?scaler$", re.I)
_OPTIMIZER = re.compile(r"optim|(^|[._])opt\d?$", re.I)


@pattern(ast.Call, rules="grad-scaler")
def scalers(site: LintSite) -> Hit | None:
    """Match `scaler.step(optimizer)`: a gradient scaler reads back whether a gradient overflowed, if it is on."""
    step = site.matched("$x.step($optimizer)")
    if not step or not site.place or not _SCALER.search(key(step.x)) or not _OPTIMIZER.search(key(step.optimizer)):
        return None
    return Hit(
        "grad-scaler",
        "the scaler waits to check whether a gradient overflowed",
        "Use a fused optimizer (fused=True): it reads found_inf on the device. Or train in bfloat16 without a scaler.",
        seldom=True,
    )


@pattern(ast.Call, rules="checkpoint-save")
def checkpoints(site: LintSite) -> Hit | None:
    """Match `torch.save(model.state_dict(), path)` in a loop: each tensor is copied to the host."""
    saved = site.call.args[0] if site.torch(site.call) == "save" and site.call.args else None
    if saved is None or not any(getattr(part, "attr", "") == "state_dict" for part in ast.walk(saved)):
        return None
    return Hit(
        "checkpoint-save",
        "saving a checkpoint waits for every tensor",
        "Copy the state to pinned memory and write it on another thread: torch.distributed.checkpoint.async_save.",
        seldom=True,
    )
