"""Values that are read for a check, the states of a checkpoint, intended waits, and settings that cause waits."""

from __future__ import annotations

import ast
import re

from syncscan.lint.pattern import Hit, LintSite, pattern
from syncscan.lint.values import ValueKind
from syncscan.source.code_pattern import argument, constant, key, splats

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


@pattern(ast.Call, rules="anomaly-mode batch-norm-momentum")
def settings(site: LintSite) -> Hit | None:
    """Match `set_detect_anomaly(True)`, `BatchNorm(momentum=None)`: settings that make later steps wait, anywhere."""
    call, name = site.call, site.torch(site.call)
    on = name == "autograd.detect_anomaly"
    on = on or (name == "autograd.set_detect_anomaly" and constant(argument(call, "mode", 0)) is True)
    if on and argument(call, "check_nan") is None:
        fix = "Turn it on only while looking for a NaN."
        return Hit("anomaly-mode", "anomaly mode reads a value back after each node of the backward pass", fix)
    momentum = argument(call, "momentum") if name.startswith("nn.BatchNorm") else None
    if isinstance(momentum, ast.Constant) and momentum.value is None:
        return Hit("batch-norm-momentum", "BatchNorm reads its counter back in each pass", "Set a momentum.")
    return None


_DEVICE = re.compile(r"^(cuda|xpu|accelerator|mtia|hip)\.synchronize$")
_EMPTY = re.compile(r"^(cuda|xpu|accelerator)(\.memory)?\.empty_cache$")
_BARRIERS = ("distributed.barrier", "distributed.monitored_barrier")
_OBJECTS = frozenset(
    f"distributed.{name}_object{end}"
    for name, end in (("all_gather", ""), ("broadcast", "_list"), ("gather", ""), ("scatter", "_list"))
)


@pattern(ast.Call, rules="explicit-sync timing empty-cache barrier object-collective pin-memory")
def synchronizes(site: LintSite) -> Hit | None:
    """Match `torch.cuda.synchronize()`, `event.synchronize()`, `empty_cache()`, `barrier()` in each step."""
    if not site.often:
        return None
    name = site.torch(site.call)
    if _EMPTY.match(name):
        fix = "Remove it: the allocator reuses its memory. Against fragmentation, set expandable_segments:True."
        return Hit("empty-cache", "empty_cache waits for the device and frees its memory", fix)
    if _DEVICE.match(name):
        return _waits(site, "the program waits for the device")
    if (of := site.method("synchronize")) is not None and site.value(of).kind is ValueKind.EVENT:
        return _waits(site, "the program waits for an event or a stream")
    if name in _BARRIERS:
        fix = "Remove it: collectives synchronize the devices with each other."
        return Hit("barrier", "a barrier waits for all ranks", fix)
    if name in _OBJECTS:
        fix = "Use a gloo group for objects and tensors for the rest; not in every step."
        return Hit("object-collective", "objects of other ranks go through the host", fix)
    of = site.method("pin_memory")
    if of is None or not site.place or site.value(of).kind not in (ValueKind.CPU, ValueKind.BATCH):
        return None
    fix = "Let the data loader pin (DataLoader(pin_memory=True)), or reuse one pinned buffer."
    # it takes the host's time, and waits for the device only where the allocator has to
    return Hit("pin-memory", "memory is pinned on the training thread", fix, seldom=True)


def _waits(site: LintSite, title: str) -> Hit:
    if site.around.timed:
        fix = (
            "Record events in the loop and read elapsed_time after it: a recorded event costs the host next to nothing."
        )
        return Hit("timing", f"timing code waits: {title}", fix, seldom=True)
    return Hit(
        "explicit-sync",
        title,
        "If it comes before a read of a non_blocking copy, wait for that copy alone: event.synchronize() on an event "
        "recorded after it. Else remove it from the loop: for timing, read events after the loop; between streams, use "
        "wait_stream or wait_event.",
    )
