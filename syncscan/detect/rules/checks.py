"""Rules about values that are printed, logged or compared."""

from __future__ import annotations

from itertools import takewhile

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.model.finding import Confidence, Diagnosis, Removal

_FORMATTER = ("aten::isfinite", "aten::ne", "aten::__and__")
_READ_ONE = frozenset(("aten::detach", "aten::item", "aten::resolve_conj", "aten::resolve_neg"))
_BURST = frozenset(
    f"aten::{op}"
    for op in "abs to min max unbind ceil ne is_nonzero div gt lt le ge eq detach item resolve_conj "
    "resolve_neg select slice alias view reshape lift_fresh masked_select any isinf isnan cat "
    "unsqueeze squeeze flatten numpy_T".split()
)


def print_tensor(call: Call) -> Diagnosis | None:
    """Match a wait inside torch's formatting code, or, where no frames tell, in the burst of ops that it leaves."""
    if not (call.place.in_library("torch/_tensor_str.py") or (not call.place.has_frames and _in_burst(call))):
        return None
    return Diagnosis(
        per_statement=True,
    )


def _of_integers(before: tuple[str, ...]) -> bool:
    """Return whether elements are being formatted one by one: all of a flattened tensor, each detached and read."""
    reads = list(takewhile(_READ_ONE.__contains__, reversed(before)))
    flattened = before[: len(before) - len(reads)][-2:]
    return bool(reads) and flattened == ("aten::reshape", "aten::unbind")


def _in_burst(call: Call) -> bool:
    """Return whether the ops since the formatter's first selection are the formatter's own."""
    if _READ_ONE.issuperset(call.before[-1:]) and _of_integers(call.before):
        return call.top in ("aten::item", "aten::to")
    if call.top == "aten::masked_select":
        return call.before[-3:] == _FORMATTER
    if "aten::masked_select" not in call.before:
        return False
    before = call.before
    selections = [at for at, op in enumerate(before) if op == "aten::masked_select" and before[:at][-3:] == _FORMATTER]
    return bool(selections) and _BURST.issuperset((*before[selections[-1] :], call.top))


_LOGGERS = (
    *("tqdm", "wandb", "tensorboard", "tensorboardX", "torch/utils/tensorboard", "logging", "mlflow", "clearml"),
    *("trackio", "lightning/pytorch/loggers", "lightning/pytorch/callbacks/progress", "lightning/fabric/loggers"),
    *("pytorch_lightning/loggers", "pytorch_lightning/callbacks/progress", "lightning_fabric/loggers"),
)


def log_scalar(call: Call) -> Diagnosis | None:
    """Match a read-back inside a logger, or in the way that `Tensor.__format__` reads."""
    formats = not call.place.has_frames and call.top == "aten::item" and call.before[-1:] == ("aten::detach",)
    logs = call.place.in_library(*_LOGGERS) or call.place.in_library_function("__format__", "__repr__")
    if not (formats or (reads_back(call) and logs)):
        return None
    return Diagnosis(
        values={"likely": ", most likely" if formats else ""},
        confidence=Confidence.MEDIUM if formats else Confidence.HIGH,
        for_caller=True,
    )


def allclose(call: Call) -> Diagnosis | None:
    """Match `aten::allclose`, torch.testing, or a truth value of `isclose`."""
    compared = any(name in call.before[-3:] for name in ("aten::isclose", "aten::allclose"))
    if not (
        (call.under("aten::is_nonzero") and compared)
        or call.under("aten::allclose")
        or call.place.in_library("torch/testing/_comparison.py", "torch/testing/_asserts.py")
    ):
        return None
    return Diagnosis(
        removal=Removal.KERNELS,
    )


_GUARDS = ("aten::isnan", "aten::isinf", "aten::isfinite")
_REDUCTIONS = ("aten::any", "aten::all", "aten::logical_not", "aten::bitwise_not", "aten::sum", "aten::max")


def nan_guard(call: Call) -> Diagnosis | None:
    """Match a value read back directly after a test for finite numbers."""
    if not call.scalar or call.top not in ("aten::item", "aten::is_nonzero"):
        return None
    guard = call.nearest_before(lambda op: op not in _REDUCTIONS, 4)
    if guard not in _GUARDS:
        return None
    test = guard.removeprefix("aten::")
    return Diagnosis(values={"test": test})
