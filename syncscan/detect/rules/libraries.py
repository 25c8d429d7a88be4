"""Rules about the code of torch and of libraries around a call."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.op_names import reads_back
from syncscan.detect.rule_table import table_of
from syncscan.model.finding import Cause, Confidence, Diagnosis, Removal, Use
from syncscan.model.runtime_calls import allocates, frees, may_load_a_kernel
from syncscan.model.slice_names import is_compiled_graph, is_compiled_region, is_optimizer_step

_VALIDATES = ("_validation", "_check_", "_basic_")
"""Parts of the names of torchmetrics' functions that look at values: `_multiclass_stat_scores_tensor_validation`."""


def metric_validation(call: Call) -> Diagnosis | None:
    functions = call.place.functions_in_library("torchmetrics")
    validates = any(part in function for function in functions for part in _VALIDATES)
    return Diagnosis(for_caller=True) if validates else None


def pyro(call: Call) -> Diagnosis | None:
    """Match a wait in one of the places of the table, or of a distribution that Pyro makes."""
    if call.place.in_library("pyro") and call.place.in_library("torch/distributions"):
        return Diagnosis(
            variant="distribution",
            cause=Cause.CHECK,
            for_caller=True,
        )
    return table_of("pyro").match(call)


def distribution_args(call: Call) -> Diagnosis | None:
    """Match a wait inside torch.distributions, or its way of asking whether all is valid."""
    all_true = call.top == "aten::is_nonzero" and call.before[-1:] == ("aten::_is_all_true",)
    return Diagnosis(for_caller=True) if all_true or call.place.in_library("torch/distributions") else None


_SCALERS = (
    "torch/amp/grad_scaler.py",
    "torch/cuda/amp/grad_scaler.py",
    "torch/distributed/fsdp/sharded_grad_scaler.py",
)
_UNSCALE = ("aten::_amp_foreach_non_finite_check_and_unscale_", "aten::_amp_non_finite_check_and_unscale_")


def grad_scaler(call: Call) -> Diagnosis | None:
    """Match a read-back between unscaling and the optimizer's step, or inside the scaler's code."""
    return Diagnosis() if call.place.in_library(*_SCALERS) or _scaled(call) else None


def _scaled(call: Call) -> bool:
    """Return whether a number is read between unscaling and the optimizer's step."""
    read = call.scalar and call.top == "aten::item" and any(n in call.before for n in _UNSCALE)
    return read and bool(call.nearest_after(_goes_on, 6))


def _goes_on(name: str) -> bool:
    return is_optimizer_step(name) or name == "aten::_amp_update_scale_"


def clip_grad(call: Call) -> Diagnosis | None:
    """Match a truth value of `isnan or isinf`, or one inside torch's clipping code."""
    truth_value = call.under("aten::is_nonzero") and call.before[-1:] == ("aten::logical_or",)
    nonfinite = truth_value and any(n in call.before[-6:] for n in ("aten::isinf", "aten::isnan"))
    return Diagnosis() if nonfinite or call.place.in_library("torch/nn/utils/clip_grad.py") else None


_LOOPS = ("_sample", "_beam_search", "_greedy", "_assisted", "_group_beam", "_constrained", "_contrastive", "_dola")
"""Names, or begins of names, of the loops over tokens in transformers/generation/utils.py.

In 5.17 `_sample` asks `StopCheck.__call__`: `bool(unfinished_sequences.max() == 0)`.
"""


def generation_stop(call: Call) -> Diagnosis | None:
    """Match a wait that transformers' generation code makes itself, not the model or a mask that it calls."""
    if not call.place.decided_in("transformers/generation"):
        return None
    return _each_token(call) if call.place.in_library_function(*_LOOPS) else _each_call(call)


def _each_token(call: Call) -> Diagnosis:
    if call.point.direction == "HtoD":
        return _each_call(call)
    return Diagnosis(for_caller=True)


def _each_call(call: Call) -> Diagnosis:
    """Match special tokens that become device tensors, and the warnings about them."""
    copies = call.point.direction == "HtoD"
    return Diagnosis(
        variant="call",
        values={"what": "copies special tokens to the device" if copies else "checks its input"},
        cause=Cause.PAGEABLE if copies else Cause.CHECK,
        use=Use.NOTHING if copies else Use.SHOWN,
        for_caller=True,
        removal=Removal.PINNED_COPY if copies else Removal.NOTHING,
    )


def quantization(call: Call) -> Diagnosis | None:
    """Match a quantization op around the call, or torch's quantization code."""
    op = call.op_with("fake_quant", "quantize_per", "_obs_")
    if not (op or _observes(call) or call.place.in_library("torch/ao/quantization", "torchao")):
        return None
    what = op.removeprefix("aten::") or "a quantization observer"
    return Diagnosis(values={"what": what})


def _observes(call: Call) -> bool:
    """Return whether an observer looks at its extremes before it computes its scale: zero is mixed into both next."""
    if call.top != "aten::is_nonzero":
        return False
    following = [n for n in call.after[:8] if n not in ("aten::gt", "aten::is_nonzero", "aten::le")]
    return following[:3] == ["aten::zeros_like", "aten::min", "aten::zeros_like"]


_SAVES = tuple(
    f"{head}{name}"
    for head in ("", "_")
    for name in "save_checkpoint save_model save_pretrained save_state save_state_dict save_weights save_ckpt "
    "save_adapter save_optimizer save_optimizer_and_scheduler save_file save_16bit_model".split()
)
"""Names of library functions that save a model; `save_image` and `save_figure` save drawings."""
_SAVE = ("save", "_save")
_FILES = ("checkpoint", "saver", "saving", "serializ", "safetensors", "trainer", "modeling")
"""A function that is merely called `save` saves a model if its file is for that; a result's `save` saves a picture."""


def checkpoint_save(call: Call) -> Diagnosis | None:
    if call.point.direction != "DtoH":
        return None
    in_torch = call.place.in_library("torch/serialization.py", "torch/distributed/checkpoint")
    named = call.place.in_library_function_of(*_SAVES) or call.place.in_library_function_of(*_SAVE, files=_FILES)
    return Diagnosis(for_caller=True, use=Use.SHOWN, removal=Removal.ASYNC_COPY) if in_torch or named else None


_PACKAGES = {
    "torch/cuda/graphs.py": ("capturing a CUDA graph", Cause.EXPLICIT),
    "torch/_inductor": ("torch.compile's benchmarking", Cause.INIT),
    "triton/runtime/autotuner.py": ("tuning a kernel", Cause.INIT),
}
_LOADING = "torch/serialization.py"


def one_off(call: Call) -> Diagnosis | None:
    """Match a wait inside code that runs once, or a library's first call."""
    if _sets_up(call):
        return Diagnosis(
            variant="setup", values={"api": call.point.apis[0]}, confidence=Confidence.MEDIUM, intended=True
        )
    place, cause = _place(call)
    if not place or (call.place.in_library(_LOADING) and call.point.direction == "DtoH"):
        return None
    return Diagnosis(values={"place": place}, cause=cause, for_caller=True)


def _sets_up(call: Call) -> bool:
    """Return whether a library creates its handles here, and not torch's allocator gives back what it has."""
    idle = not call.point.waited and frees(call.point.apis[0])
    return idle and call.first_run and not allocates(call.call_before)


def _place(call: Call) -> tuple[str, Cause]:
    if call.place.in_library(*_PACKAGES):
        return next(place for package, place in _PACKAGES.items() if call.place.in_library(package))
    if call.place.in_library_function("load_state_dict", "_load_from_state_dict"):
        return "loading a state dict", Cause.INIT
    return ("loading a checkpoint", Cause.INIT) if call.place.in_library(_LOADING) else ("", Cause.INIT)


_BY_DESIGN = ("Adafactor", "ASGD", "LBFGS")


_OF_SCHEDULER = Diagnosis(variant="scheduler", use=Use.STEERS, for_caller=True)


def optimizer_readback(call: Call) -> Diagnosis | None:
    if call.point.direction == "HtoD" or not reads_back(call):
        return None
    if call.place.decided_in("torch/optim/lr_scheduler.py") and call.place.deciding_function == "step":
        return _OF_SCHEDULER
    scope = call.place.scope_that(is_optimizer_step)
    if not (scope or call.place.in_library("torch/optim")) or (call.in_closure and not _in_its_own_code(call, scope)):
        return None
    name = scope.removeprefix("Optimizer.step#").removesuffix(".step") or "the optimizer"
    return Diagnosis(
        variant="design" if name in _BY_DESIGN else "",
        values={"name": name},
        confidence=Confidence.HIGH if call.place.has_frames or not call.in_closure else Confidence.MEDIUM,
    )


def _in_its_own_code(call: Call, scope: str) -> bool:
    """Return whether a read beside a closure's is the optimizer's; without frames, only LBFGS, which reads the loss."""
    if call.place.has_frames:
        return call.place.decided_in("torch/optim")
    return "LBFGS" in scope


_WRAPPER = "torch/_dynamo/eval_frame.py"
_READS = {
    "aten::item": Cause.READBACK,
    "aten::to": Cause.READBACK,
    "aten::is_nonzero": Cause.CTRL,
    "aten::nonzero": Cause.SHAPE,
}
"""Read-backs that Dynamo leaves to eager mode, and the cause of each."""


def graph_break(call: Call) -> Diagnosis | None:
    """Match a read-back that runs eagerly in a compiled region, between two, or in a function left to eager."""
    if call.top not in _READS or call.point.direction == "HtoD":
        return None
    if not (_inside(call) or _between(call) or _left_to_eager(call)):
        return None
    broken = _inside(call) or _between(call)
    return Diagnosis(
        values={"does": "breaks the compiled graph in two" if broken else "keeps a function from being compiled"},
        cause=_READS[call.top],
    )


def _inside(call: Call) -> bool:
    return any(map(is_compiled_region, call.ops)) and not any(map(is_compiled_graph, call.ops))


def _left_to_eager(call: Call) -> bool:
    """Return whether compiled code calls it outside of a region: a break in a loop leaves the whole function eager.

    Dynamo's wrapper stands in the stack above the function: `compile_wrapper` of torch/_dynamo/eval_frame.py. What
    `torch.compiler.disable` wraps stands below `_fn` there, and was meant to run eagerly; so stood both before 2.9.
    """
    wrappers = [frame.function for frame in call.place.python_frames if frame.file.endswith(_WRAPPER)]
    left = bool(wrappers) and wrappers[-1] == "compile_wrapper"
    return left and not any(map(is_compiled_region, call.ops)) and not call.backward


def _between(call: Call) -> bool:
    """Return whether one region ran before it and another one runs after it."""
    before = call.nearest_before(is_compiled_region, 8)
    return bool(before) and call.nearest_after(is_compiled_region, 8) not in ("", before)


def module_loading(call: Call) -> Diagnosis | None:
    """Match a call about a kernel that measurably blocked."""
    if not may_load_a_kernel(call.point.api):
        return None
    return Diagnosis(values={"api": call.point.api}, confidence=Confidence.MEDIUM, intended=True)
