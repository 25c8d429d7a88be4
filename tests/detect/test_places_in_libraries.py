"""What is known of libraries that programs train with: which functions wait for what, and what a caller can do."""

from __future__ import annotations

import pytest

from syncscan.detect import detect
from syncscan.model.finding import Cause, Diagnosis, Use
from tests.builder import TraceBuilder

ITEM = "aten::item > aten::_local_scalar_dense"
BOOL = "aten::is_nonzero > " + ITEM
TO = "aten::to > aten::_to_copy > aten::copy_"
H2D = "Memcpy HtoD (Pageable -> Device)"
D2H = "Memcpy DtoH (Device -> Pinned)"
SITE = "/venv/lib/python3.12/site-packages"


def named(*frames: str, chain: str = ITEM, copy: str = D2H, before: str = "") -> Diagnosis:
    """The diagnosis of a wait in these frames of libraries, outermost first, that line 3 of a program called."""
    t = TraceBuilder()
    t.step(0, 10_000)
    for depth, name in enumerate(("train.py(3): main", *frames)):
        t.frame(name, 10 + depth, 9_000 - depth)
    if before:
        t.op(before, 40, 50)
    t.launch("busy", at=60, lasts=1000)
    end = t.free_at() + 20
    for name in filter(None, chain.split(" > ")):
        t.op(name, 80, end)
    if copy:
        t.copy(copy, at=82)
    t.call("cudaStreamSynchronize", 95, end - 1)
    (point,), warnings = detect(t.trace())
    assert warnings == ()
    return point.diagnosis


TRAIN = "transformers/trainer.py(1520): train"
FIT = "lightning/pytorch/trainer/trainer.py(580): fit"
ODE = "torchdiffeq/_impl/odeint.py(80): odeint"
CONNECTOR = "lightning/pytorch/trainer/connectors/logger_connector"

KNOWN: list[tuple[str, Cause, Use, str, Diagnosis]] = [
    (
        "transformers",
        Cause.CHECK,
        Use.SHOWN,
        "logging_nan_inf_filter=False",
        named(TRAIN, "transformers/trainer.py(2600): _inner_training_loop", chain=BOOL, before="aten::isnan"),
    ),
    (
        "transformers",
        Cause.LOG,
        Use.SHOWN,
        "logging_steps",
        named(TRAIN, "transformers/trainer.py(2175): _maybe_log_save_evaluate"),
    ),
    (
        "transformers",
        Cause.CTRL,
        Use.STEERS,
        "no attention_mask",
        named("transformers/masking_utils.py(331): _ignore_bidirectional_mask_sdpa", chain=BOOL, before="aten::all"),
    ),
    (
        "generation-stop",
        Cause.CTRL,
        Use.STEERS,
        "one step late",
        named("transformers/generation/utils.py(3083): _sample", chain=BOOL),
    ),
    (
        "generation-stop",
        Cause.PAGEABLE,
        Use.NOTHING,
        "Once a call",
        named("transformers/generation/utils.py(2192): _tensor_or_none", chain=TO, copy=H2D),
    ),
    (
        "accelerate",
        Cause.PAGEABLE,
        Use.NOTHING,
        "non_blocking",
        named(TRAIN, "accelerate/utils/operations.py(160): send_to_device", chain=TO, copy=H2D),
    ),
    ("trl", Cause.LOG, Use.SHOWN, "use_liger_kernel", named(TRAIN, "trl/trainer/sft_trainer.py(9): compute_loss")),
    ("trl", Cause.LOG, Use.SHOWN, "subclass", named(TRAIN, "trl/trainer/dpo_trainer.py(9): get_batch_loss_metrics")),
    ("lightning", Cause.LOG, Use.SHOWN, "prog_bar=False", named(FIT, f"{CONNECTOR}/result.py(490): metrics")),
    (
        "lightning",
        Cause.LOG,
        Use.SHOWN,
        "log_every_n_steps",
        named(
            FIT, f"{CONNECTOR}/logger_connector.py(110): log_metrics", "lightning/fabric/utilities/apply_func.py(9): f"
        ),
    ),
    (
        "lightning",
        Cause.PAGEABLE,
        Use.NOTHING,
        "torch.full",
        named("pytorch_lightning/core/module.py(600): __to_tensor", chain=TO, copy=H2D),
    ),
    (
        "torchvision-detection",
        Cause.CHECK,
        Use.STEERS,
        "No argument spares it",
        named("torchvision/models/detection/generalized_rcnn.py(90): forward", chain=BOOL, before="aten::any"),
    ),
    (
        "torchvision-detection",
        Cause.SHAPE,
        Use.STEERS,
        "No argument spares it",
        named(
            "torchvision/models/detection/generalized_rcnn.py(90): forward",
            "torchvision/models/detection/_utils.py(50): __call__",
            chain="aten::where > aten::nonzero",
        ),
    ),
    (
        "torchvision-detection",
        Cause.SHAPE,
        Use.STEERS,
        "featmap_names",
        named("torchvision/ops/poolers.py(200): _multiscale_roi_align", chain="aten::where > aten::nonzero"),
    ),
    (
        "metric-validation",
        Cause.CHECK,
        Use.STEERS,
        "validate_args=False",
        named("torchmetrics/functional/classification/stat_scores.py(9): _multiclass_stat_scores_tensor_validation"),
    ),
    (
        "torchmetrics",
        Cause.SHAPE,
        Use.STEERS,
        "No argument spares it",
        named("torchmetrics/utilities/data.py(200): _bincount", chain="aten::bincount > " + ITEM),
    ),
    (
        "torchmetrics",
        Cause.CHECK,
        Use.STEERS,
        "nan_strategy='disable'",
        named("torchmetrics/aggregation.py(70): _cast_and_nan_check_input", chain=BOOL),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "size=data.num_graphs",
        named(
            "torch_geometric/nn/pool/glob.py(30): global_mean_pool", "torch_geometric/nn/aggr/base.py(110): __call__"
        ),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "num_nodes=",
        named("torch_geometric/utils/num_nodes.py(30): maybe_num_nodes"),
    ),
    ("torch-geometric", Cause.SHAPE, Use.STEERS, "dim_size=", named("torch_geometric/utils/_scatter.py(50): scatter")),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "batch_size=data.num_graphs, max_num_nodes=n",
        named("torch_geometric/utils/_to_dense_batch.py(90): to_dense_batch"),
    ),
    (
        "torch-geometric",
        Cause.PAGEABLE,
        Use.NOTHING,
        "fill_value",
        named("torch_geometric/utils/_to_dense_batch.py(120): to_dense_batch", chain=TO, copy=H2D),
    ),
    (
        "torchdiffeq",
        Cause.CTRL,
        Use.STEERS,
        "method='rk4'",
        named(ODE, "torchdiffeq/_impl/rk_common.py(284): _adaptive_step", chain=BOOL),
    ),
    (
        "torchdiffeq",
        Cause.CHECK,
        Use.STEERS,
        "python -O",
        named(ODE, "torchdiffeq/_impl/rk_common.py(285): _adaptive_step", chain=BOOL, before="aten::all"),
    ),
    (
        "torchdiffeq",
        Cause.CTRL,
        Use.STEERS,
        "first_step",
        named(ODE, "torchdiffeq/_impl/misc.py(40): _select_initial_step", chain=BOOL),
    ),
    (
        "torchdiffeq",
        Cause.PAGEABLE,
        Use.NOTHING,
        "once a call of odeint",
        named(ODE, "torchdiffeq/_impl/rk_common.py(160): __init__", chain=TO, copy=H2D),
    ),
    (
        "torchdiffeq",
        Cause.CTRL,
        Use.STEERS,
        "step_size",
        named(ODE, "torchdiffeq/_impl/solvers.py(110): integrate", chain=BOOL),
    ),
    (
        "gpytorch",
        Cause.CTRL,
        Use.STEERS,
        "overrides covar_dist",
        named("gpytorch/kernels/kernel.py(340): covar_dist", chain="aten::equal > " + ITEM),
    ),
    (
        "gpytorch",
        Cause.CHECK,
        Use.STEERS,
        "trace_mode",
        named("linear_operator/utils/cholesky.py(22): _psd_safe_cholesky", chain=BOOL),
    ),
    ("pyro", Cause.READBACK, Use.SHOWN, "differentiable_loss", named("pyro/infer/util.py(30): torch_item")),
    (
        "pyro",
        Cause.CHECK,
        Use.STEERS,
        "pyro.enable_validation(False)",
        named("pyro/infer/svi.py(140): step", "torch/distributions/normal.py(50): __init__", chain=BOOL),
    ),
    (
        "deepspeed",
        Cause.EXPLICIT,
        Use.NOTHING,
        '"throughput": {"enabled": false}',
        named("deepspeed/utils/timer.py(250): stop", chain="", copy=""),
    ),
    (
        "deepspeed",
        Cause.CHECK,
        Use.STEERS,
        '"bf16": {"enabled": true}',
        named("deepspeed/runtime/zero/stage_1_and_2.py(2000): has_overflow"),
    ),
    (
        "megatron",
        Cause.READBACK,
        Use.UNKNOWN,
        "multi_tensor_scale_tensor",
        named("megatron/core/optimizer/clip_grads.py(130): get_grad_norm_fp32"),
    ),
    (
        "megatron",
        Cause.LOG,
        Use.SHOWN,
        "--log-num-zeros-in-grad",
        named("megatron/core/optimizer/clip_grads.py(270): count_zeros_fp32"),
    ),
    (
        "vllm",
        Cause.CTRL,
        Use.STEERS,
        "--async-scheduling",
        named("vllm/v1/worker/gpu_model_runner.py(4046): _to_list", chain="", copy=""),
    ),
    (
        "vllm",
        Cause.EXPLICIT,
        Use.NOTHING,
        "It is meant",
        named("vllm/v1/worker/gpu_model_runner.py(3000): synchronize_input_prep", chain="", copy=""),
    ),
    (
        "diffusers",
        Cause.CTRL,
        Use.STEERS,
        "set_begin_index(0)",
        named("diffusers/schedulers/scheduling_euler_discrete.py(500): index_for_timestep"),
    ),
]


@pytest.mark.parametrize(
    ("rule", "cause", "use", "switch", "diagnosis"), KNOWN, ids=[f"{k[0]}-{i}" for i, k in enumerate(KNOWN)]
)
def test_a_place_is_named_with_what_a_caller_can_do(
    rule: str, cause: Cause, use: Use, switch: str, diagnosis: Diagnosis
) -> None:
    """The rule of its library, its cause, what its value is for, and the switch that spares the wait, if any."""
    assert (diagnosis.rule, diagnosis.cause, diagnosis.use) == (rule, cause, use)
    assert switch in diagnosis.fix
    assert not diagnosis.fix.startswith("It stands in")


@pytest.mark.parametrize(
    ("rule", "diagnosis"),
    [
        ("item", named(TRAIN, "transformers/trainer.py(1847): _run_epoch", before="aten::sum")),
        ("tensor-bool", named(TRAIN, "my_transformers/trainer.py(9): _run_epoch", chain=BOOL)),
        (
            "boolean-index",
            named("torch_geometric/utils/loop.py(9): remove_self_loops", chain="aten::index > aten::nonzero"),
        ),
        (
            "item",
            named(
                "transformers/generation/utils.py(9): _sample", "transformers/models/moe/modeling_moe.py(5): forward"
            ),
        ),
        (
            "nonzero",
            named(
                "trl/trainer/sft_trainer.py(9): compute_loss", "transformers/models/moe.py(5): f", chain="aten::nonzero"
            ),
        ),
        ("item", named("gpytorch/models/exact_gp.py(9): __call__")),
        ("item", named("deepspeed/runtime/engine.py(9): step", "model.py(4): forward")),
        ("equal", named("train.py(9): covar_dist", chain="aten::equal > " + ITEM)),
    ],
)
def test_what_a_table_does_not_know_keeps_its_general_rule(rule: str, diagnosis: Diagnosis) -> None:
    """Another reason in the same function, another function or package, a model that a library calls, a user's code."""
    assert diagnosis.rule == rule


def test_a_library_is_known_wherever_it_is_installed() -> None:
    """Not only by the path that the profiler leaves of a file."""
    installed = named(f"{SITE}/torch_geometric/utils/num_nodes.py(30): maybe_num_nodes")
    assert installed.rule == "torch-geometric"
