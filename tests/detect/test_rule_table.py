"""Tables name which functions of training libraries wait for what, and what a caller can do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from syncscan.detect import detect
from syncscan.detect.rule_table import table_of
from syncscan.model.finding import Cause, Diagnosis, Replacement, Use
from syncscan.model.libraries import LIBRARIES
from syncscan.rules.pages import FOLDER
from tests.builder import TraceBuilder
from tests.each import each

ITEM = "aten::item > aten::_local_scalar_dense"
BOOL = "aten::is_nonzero > " + ITEM
TO = "aten::to > aten::_to_copy > aten::copy_"
H2D = "Memcpy HtoD (Pageable -> Device)"
D2H = "Memcpy DtoH (Device -> Pinned)"
SITE = "/venv/lib/python3.12/site-packages"


def named(*frames: str, chain: str = ITEM, copy: str = D2H, before: str = "") -> Callable[[], Diagnosis]:
    """Gives the diagnosis of a wait in these frames of libraries, outermost first, that line 3 of a program called."""
    return lambda: _diagnosis(frames, chain, copy, before)


def _diagnosis(frames: tuple[str, ...], chain: str, copy: str, before: str) -> Diagnosis:
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
SHARD = "torch/distributed/fsdp/_fully_shard"
SGLANG = "sglang/srt"
CONNECTOR = "lightning/pytorch/trainer/connectors/logger_connector"

KNOWN: list[tuple[str, Cause, Use, str, Callable[[], Diagnosis]]] = [
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
        "transformers",
        Cause.LOG,
        Use.SHOWN,
        "include_num_input_tokens_seen",
        named(TRAIN, "transformers/trainer.py(2616): _track_num_input_tokens"),
    ),
    (
        "transformers",
        Cause.CTRL,
        Use.STEERS,
        "use_cache=True",
        named("transformers/masking_utils.py(755): find_packed_sequence_indices", chain=BOOL, before="aten::all"),
    ),
    (
        "transformers",
        Cause.CTRL,
        Use.STEERS,
        "cache_implementation='static'",
        named(
            "transformers/generation/utils.py(3030): _sample",
            "transformers/masking_utils.py(268): _ignore_causal_mask_sdpa",
            chain=BOOL,
        ),
    ),
    (
        "transformers",
        Cause.CHECK,
        Use.SHOWN,
        "pad_token_id = None",
        named("transformers/modeling_utils.py(4566): warn_if_padding_and_no_attention_mask", chain=BOOL),
    ),
    (
        "transformers",
        Cause.SHAPE,
        Use.STEERS,
        "DataCollatorWithFlattening",
        named("transformers/modeling_flash_attention_utils.py(370): _get_unpad_data"),
    ),
    (
        "transformers",
        Cause.CTRL,
        Use.STEERS,
        "cu_seq_lens_q",
        named("transformers/modeling_flash_attention_utils.py(550): _is_packed_sequence", chain=BOOL),
    ),
    (
        "generation-stop",
        Cause.CTRL,
        Use.STEERS,
        "custom_generate",
        named("transformers/generation/utils.py(3083): _sample", chain=BOOL),
    ),
    (
        "generation-stop",
        Cause.PAGEABLE,
        Use.NOTHING,
        "Once per call of generate()",
        named("transformers/generation/utils.py(2192): _tensor_or_none", chain=TO, copy=H2D),
    ),
    (
        "accelerate",
        Cause.PAGEABLE,
        Use.NOTHING,
        "non_blocking",
        named(TRAIN, "accelerate/utils/operations.py(160): send_to_device", chain=TO, copy=H2D),
    ),
    (
        "accelerate",
        Cause.DIST,
        Use.UNKNOWN,
        "in the collator",
        named("accelerate/utils/operations.py(781): _pad_across_processes", chain=TO),
    ),
    (
        "accelerate",
        Cause.DIST,
        Use.UNKNOWN,
        "every N steps",
        named("accelerate/accelerator.py(2917): check_trigger"),
    ),
    ("trl", Cause.LOG, Use.SHOWN, "Trainer.compute_loss", named(TRAIN, "trl/trainer/sft_trainer.py(9): compute_loss")),
    ("trl", Cause.LOG, Use.SHOWN, "subclass", named(TRAIN, "trl/trainer/dpo_trainer.py(9): _compute_loss")),
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
        "lightning",
        Cause.PAGEABLE,
        Use.NOTHING,
        "pin_memory=True",
        named(
            FIT,
            "lightning/pytorch/core/hooks.py(610): transfer_batch_to_device",
            "lightning/fabric/utilities/apply_func.py(104): batch_to",
            chain=TO,
            copy=H2D,
        ),
    ),
    (
        "lightning",
        Cause.EXPLICIT,
        Use.NOTHING,
        "ThroughputMonitor",
        named(FIT, "lightning/pytorch/callbacks/throughput_monitor.py(131): _update", chain="", copy=""),
    ),
    (
        "lightning",
        Cause.PAGEABLE,
        Use.NOTHING,
        "logging_interval='epoch'",
        named(FIT, "pytorch_lightning/callbacks/lr_monitor.py(217): <dictcomp>", chain=TO, copy=H2D),
    ),
    (
        "lightning",
        Cause.LOG,
        Use.SHOWN,
        "get_total_norm",
        named("pytorch_lightning/utilities/grads.py(51): grad_norm"),
    ),
    (
        "lightning",
        Cause.DIST,
        Use.UNKNOWN,
        "_broadcast_sigterm_tensor = lambda",
        named(FIT, "lightning/pytorch/loops/training_epoch_loop.py(269): _broadcast_sigterm_tensor"),
    ),
    (
        "timm",
        Cause.PAGEABLE,
        Use.NOTHING,
        "mode='batch'",
        named("timm/data/mixup.py(182): _mix_elem", chain=TO, copy=H2D),
    ),
    (
        "timm",
        Cause.PAGEABLE,
        Use.NOTHING,
        "pin_memory=True",
        named("timm/data/loader.py(158): __iter__", chain=TO, copy=H2D),
    ),
    (
        "timm",
        Cause.READBACK,
        Use.SHOWN,
        "device=None",
        named("timm/utils/model_ema.py(326): apply_update_", chain=TO, copy="Memcpy DtoH (Device -> Pageable)"),
    ),
    (
        "timm",
        Cause.CTRL,
        Use.STEERS,
        "opt='adamw'",
        named("timm/optim/adamp.py(135): step", "timm/optim/adamp.py(38): projection", chain=BOOL),
    ),
    (
        "peft",
        Cause.PAGEABLE,
        Use.NOTHING,
        "model.prompt_tokens[name]",
        named("peft/peft_model.py(2160): forward", "peft/peft_model.py(777): get_prompt", chain=TO, copy=H2D),
    ),
    (
        "peft",
        Cause.PAGEABLE,
        Use.NOTHING,
        "with torch.device(device)",
        named("peft/peft_model.py(2134): forward", chain=TO, copy=H2D),
    ),
    (
        "peft",
        Cause.CTRL,
        Use.STEERS,
        "deltaT",
        named("peft/tuners/adalora/layer.py(478): mask_to_budget"),
    ),
    (
        "peft",
        Cause.CHECK,
        Use.STEERS,
        "VBLoRALayer",
        named("peft/tuners/vblora/layer.py(192): _get_lora_matrices", chain=BOOL),
    ),
    (
        "peft",
        Cause.CHECK,
        Use.STEERS,
        "one read per layer",
        named("peft/tuners/poly/router.py(65): forward"),
    ),
    (
        "peft",
        Cause.SHAPE,
        Use.STEERS,
        "alora_offsets",
        named("peft/tuners/lora/variants.py(710): calculate_alora_offsets"),
    ),
    (
        "peft",
        Cause.SHAPE,
        Use.STEERS,
        "decides a shape",
        named("peft/tuners/lora/variants.py(650): forward", chain="aten::index > aten::nonzero"),
    ),
    (
        "fsdp2",
        Cause.EXPLICIT,
        Use.NOTHING,
        "This is intended with CPUOffloadPolicy",
        named(
            f"{SHARD}/_fsdp_state.py(300): f",
            f"{SHARD}/_fsdp_param_group.py(610): finalize_backward",
            chain="",
            copy="",
        ),
    ),
    (
        "fsdp2",
        Cause.PAGEABLE,
        Use.NOTHING,
        "pin_memory=True",
        named(f"{SHARD}/_fsdp_collectives.py(626): foreach_reduce", chain=TO, copy="Memcpy DtoH (Device -> Pageable)"),
    ),
    (
        "fsdp2",
        Cause.PAGEABLE,
        Use.NOTHING,
        "from pinned memory",
        named(f"{SHARD}/_fsdp_param.py(784): all_gather_inputs", chain=TO, copy=H2D),
    ),
    (
        "torchvision-detection",
        Cause.CHECK,
        Use.STEERS,
        "No option avoids this",
        named("torchvision/models/detection/generalized_rcnn.py(90): forward", chain=BOOL, before="aten::any"),
    ),
    (
        "torchvision-detection",
        Cause.SHAPE,
        Use.STEERS,
        "fg_bg_sampler",
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
        "No option avoids this",
        named(
            "torchvision/models/detection/generalized_rcnn.py(90): forward",
            "torchvision/models/detection/rpn.py(285): filter_proposals",
            chain="aten::where > aten::nonzero",
        ),
    ),
    (
        "torchvision-detection",
        Cause.PAGEABLE,
        Use.NOTHING,
        "model.transform.image_mean",
        named("torchvision/models/detection/transform.py(167): normalize", chain=TO, copy=H2D),
    ),
    (
        "torchvision-detection",
        Cause.PAGEABLE,
        Use.NOTHING,
        "coder.weights",
        named("torchvision/models/detection/_utils.py(157): encode_single", chain=TO, copy=H2D),
    ),
    (
        "torchvision-detection",
        Cause.PAGEABLE,
        Use.NOTHING,
        "_skip_resize=True",
        named("torchvision/models/detection/transform.py(308): resize_boxes", chain=TO, copy=H2D),
    ),
    (
        "torchvision-detection",
        Cause.PAGEABLE,
        Use.NOTHING,
        "No option avoids this",
        named("torchvision/models/detection/_utils.py(216): decode_single", chain=TO, copy=H2D),
    ),
    (
        "torchvision-detection",
        Cause.SHAPE,
        Use.STEERS,
        "keep the mask",
        named("torchvision/ops/boxes.py(145): remove_small_boxes", chain="aten::where > aten::nonzero"),
    ),
    (
        "torchvision-detection",
        Cause.PAGEABLE,
        Use.NOTHING,
        "shifted by class",
        named("torchvision/ops/boxes.py(100): _batched_nms_coordinate_trick", chain=TO, copy=H2D),
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
        "No option avoids this",
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
        "torchmetrics",
        Cause.PAGEABLE,
        Use.NOTHING,
        "update() a tensor",
        named("torchmetrics/aggregation.py(82): _cast_and_nan_check_input", chain=TO, copy=H2D),
    ),
    (
        "torchmetrics",
        Cause.SHAPE,
        Use.STEERS,
        "ignore_index",
        named(
            "torchmetrics/functional/classification/confusion_matrix.py(318): _multiclass_confusion_matrix_format",
            chain="aten::index > aten::nonzero",
        ),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "global_mean_pool(x, batch, size=data.num_graphs)",
        named(
            "torch_geometric/nn/pool/glob.py(63): global_mean_pool", "torch_geometric/utils/_scatter.py(48): scatter"
        ),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "norm(x, batch, batch_size=data.num_graphs)",
        named("torch_geometric/nn/norm/graph_norm.py(70): forward"),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "max_num_nodes=n, batch_size=data.num_graphs",
        named("torch_geometric/utils/_to_dense_adj.py(79): to_dense_adj"),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "cached=True",
        named(
            "torch_geometric/nn/conv/gcn_conv.py(100): gcn_norm",
            "torch_geometric/utils/loop.py(650): add_remaining_self_loops",
            chain="aten::index > aten::nonzero",
        ),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "add_self_loops=False",
        named(
            "torch_geometric/nn/conv/gat_conv.py(342): forward",
            "torch_geometric/utils/loop.py(113): remove_self_loops",
            chain="aten::index > aten::nonzero",
        ),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "T.RemoveSelfLoops()",
        named("torch_geometric/utils/loop.py(113): remove_self_loops", chain="aten::index > aten::nonzero"),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "depends on the graph's size",
        named("torch_geometric/nn/pool/select/topk.py(60): topk", chain="aten::index > aten::nonzero"),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "don't take the number of graphs",
        named("torch_geometric/nn/pool/select/topk.py(29): topk", "torch_geometric/utils/_scatter.py(48): scatter"),
    ),
    (
        "torch-geometric",
        Cause.SHAPE,
        Use.STEERS,
        "the number of kept edges depends on the kept nodes",
        named("torch_geometric/nn/pool/connect/filter_edges.py(31): filter_adj", chain="aten::index > aten::nonzero"),
    ),
    (
        "torch-geometric",
        Cause.PAGEABLE,
        Use.NOTHING,
        "batch.to(device, non_blocking=True)",
        named(
            "torch_geometric/data/data.py(363): to",
            "torch_geometric/data/data.py(340): apply",
            "torch_geometric/data/data.py(364): <lambda>",
            chain=TO,
            copy=H2D,
        ),
    ),
    (
        "nms",
        Cause.SHAPE,
        Use.STEERS,
        "the detector runs NMS per image",
        named(
            "torchvision/models/detection/rpn.py(300): filter_proposals",
            "torchvision/ops/boxes.py(48): nms",
            chain="torchvision::nms > aten::masked_select > aten::nonzero",
        ),
    ),
    (
        "torch-geometric",
        Cause.PAGEABLE,
        Use.NOTHING,
        "No option avoids this",
        named(
            "torch_geometric/utils/_to_dense_batch.py(130): to_dense_batch",
            chain="aten::index_put_ > aten::_index_put_impl_ > " + TO,
            copy=H2D,
        ),
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
        "once per call of odeint",
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
        "override covar_dist",
        named("gpytorch/kernels/kernel.py(340): covar_dist", chain="aten::equal > " + ITEM),
    ),
    (
        "gpytorch",
        Cause.CTRL,
        Use.STEERS,
        "No setting avoids this: one read per evaluation of the kernel",
        named("gpytorch/kernels/linear_kernel.py(97): forward", chain="aten::equal > " + ITEM),
    ),
    (
        "gpytorch",
        Cause.CHECK,
        Use.STEERS,
        "model(*model.train_inputs)",
        named(
            "gpytorch/models/exact_gp.py(277): __call__",
            "gpytorch/models/exact_gp.py(278): <genexpr>",
            chain="aten::equal > " + ITEM,
        ),
    ),
    (
        "gpytorch",
        Cause.CTRL,
        Use.STEERS,
        "updated_strategy",
        named("gpytorch/variational/_variational_strategy.py(345): __call__"),
    ),
    (
        "gpytorch",
        Cause.CHECK,
        Use.STEERS,
        "linear_operator.settings.trace_mode()",
        named("linear_operator/utils/cholesky.py(22): _psd_safe_cholesky", chain=BOOL),
    ),
    ("pyro", Cause.READBACK, Use.SHOWN, "pyro.poutine.replay", named("pyro/infer/util.py(30): torch_item")),
    (
        "pyro",
        Cause.CHECK,
        Use.SHOWN,
        "pyro.enable_validation(False)",
        named("pyro/poutine/trace_struct.py(239): log_prob_sum", "pyro/util.py(135): warn_if_nan", chain=BOOL),
    ),
    (
        "pyro",
        Cause.CHECK,
        Use.SHOWN,
        "model_trace.log_prob_sum()",
        named("pyro/infer/trace_elbo.py(120): differentiable_loss", "pyro/util.py(135): warn_if_nan", chain=BOOL),
    ),
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
        '"bf16": {"enabled": true, "check_grad_overflow": false}',
        named("deepspeed/runtime/zero/stage_1_and_2.py(2000): has_overflow"),
    ),
    (
        "deepspeed",
        Cause.EXPLICIT,
        Use.NOTHING,
        '"overlap_comm": false',
        named("deepspeed/runtime/zero/stage_1_and_2.py(2413): allreduce_and_copy", chain="", copy=""),
    ),
    (
        "deepspeed",
        Cause.EXPLICIT,
        Use.NOTHING,
        "stage3_max_live_parameters",
        named(
            "deepspeed/runtime/zero/partitioned_param_coordinator.py(404): _fetch_sub_module_impl", chain="", copy=""
        ),
    ),
    (
        "megatron",
        Cause.EXPLICIT,
        Use.NOTHING,
        "--timing-log-level 0",
        named("megatron/core/timers.py(152): start", chain="", copy=""),
    ),
    (
        "megatron",
        Cause.CHECK,
        Use.STEERS,
        "--no-check-for-nan-in-loss-and-grad",
        named("megatron/core/rerun_state_machine.py(520): validate_result", chain=BOOL),
    ),
    (
        "megatron",
        Cause.EXPLICIT,
        Use.NOTHING,
        "batch_p2p_sync=False",
        named("megatron/core/pipeline_parallel/p2p_communication.py(419): _communicate", chain="", copy=""),
    ),
    (
        "megatron",
        Cause.SHAPE,
        Use.STEERS,
        "--moe-pad-expert-input-to-capacity",
        named("megatron/core/transformer/moe/token_dispatcher.py(950): f", chain="", copy=""),
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
        "This is intended",
        named("vllm/v1/worker/gpu_model_runner.py(3000): synchronize_input_prep", chain="", copy=""),
    ),
    (
        "sglang",
        Cause.CTRL,
        Use.STEERS,
        "--disable-overlap-schedule",
        named(f"{SGLANG}/managers/scheduler_output_processor_mixin.py(440): process_batch_result_decode", chain=TO),
    ),
    (
        "sglang",
        Cause.CTRL,
        Use.STEERS,
        "This is intended",
        named(
            f"{SGLANG}/managers/scheduler_components/batch_result_processor.py(90): process_batch_result_prefill",
            chain="",
            copy="",
        ),
    ),
    (
        "sglang",
        Cause.SHAPE,
        Use.STEERS,
        "same number in every block",
        named(f"{SGLANG}/layers/attention/vision.py(330): resolve_max_seqlen"),
    ),
    (
        "sglang",
        Cause.SHAPE,
        Use.STEERS,
        "--mm-attention-backend",
        named(f"{SGLANG}/layers/attention/vision.py(340): generate_patch_attention_mask", chain=TO),
    ),
    (
        "sglang",
        Cause.CTRL,
        Use.STEERS,
        "SGLANG_ENABLE_SPEC_V2",
        named(f"{SGLANG}/speculative/eagle_info.py(280): verify", chain=TO),
    ),
    (
        "sglang",
        Cause.CHECK,
        Use.STEERS,
        "--enable-nan-detection",
        named(f"{SGLANG}/layers/sampler.py(60): forward_cuda", chain=BOOL),
    ),
    (
        "diffusers",
        Cause.CTRL,
        Use.STEERS,
        "set_begin_index(0)",
        named("diffusers/schedulers/scheduling_euler_discrete.py(500): index_for_timestep"),
    ),
    (
        "diffusers",
        Cause.CTRL,
        Use.STEERS,
        "without a device",
        named("diffusers/schedulers/scheduling_ddim.py(460): step"),
    ),
]


@each(("rule", "cause", "use", "switch", "wait"), KNOWN, ids=[f"{k[0]}-{i}" for i, k in enumerate(KNOWN)])
def test_a_place_is_named_with_what_a_caller_can_do(
    rule: str, cause: Cause, use: Use, switch: str, wait: Callable[[], Diagnosis]
) -> None:
    """The rule of its library, its cause, what its value is for, and the switch that avoids the wait, if any."""
    diagnosis = wait()
    assert (diagnosis.rule, diagnosis.cause, diagnosis.use) == (rule, cause, use)
    assert switch in diagnosis.fix
    assert not diagnosis.fix.startswith("It is in ")


@each(
    ("rule", "wait"),
    [
        ("item", named(TRAIN, "transformers/trainer.py(1847): _run_epoch", before="aten::sum")),
        ("tensor-bool", named(TRAIN, "my_transformers/trainer.py(9): _run_epoch", chain=BOOL)),
        (
            "boolean-index",
            named("torch_geometric/utils/mask.py(9): mask_select", chain="aten::index > aten::nonzero"),
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
        ("distributed", named(f"{SHARD}/_fsdp_param.py(9): _init_sharded_param", chain=TO, copy=H2D)),
        ("to-device", named("transformers/masking_utils.py(9): _preprocess_mask_arguments", chain=TO, copy=H2D)),
        ("item", named("deepspeed/runtime/engine.py(9): step", "model.py(4): forward")),
        ("equal", named("train.py(9): covar_dist", chain="aten::equal > " + ITEM)),
    ],
)
def test_what_a_table_does_not_know_keeps_its_general_rule(rule: str, wait: Callable[[], Diagnosis]) -> None:
    """Another reason in the same function, another function or package, a model that a library calls, a user's code."""
    assert wait().rule == rule


def test_a_library_is_known_wherever_it_is_installed() -> None:
    """Not only by the path that the profiler leaves of a file."""
    installed = named(f"{SITE}/torch_geometric/utils/num_nodes.py(30): maybe_num_nodes")
    assert installed().rule == "torch-geometric"


def test_every_package_of_a_table_is_a_library() -> None:
    """Otherwise its files count as the program's own, and no call is decided on in them."""
    places = [place for file in sorted((FOLDER / "syncs").glob("*.toml")) for place in table_of(file.stem).places]
    packages = {path.partition("/")[0] for place in places for path in place.files}
    assert packages - LIBRARIES == set(), "write them into LIBRARIES of syncscan/model/libraries.py"


@pytest.mark.parametrize(
    ("frame", "replacement"),
    [
        ("gpytorch/kernels/kernel.py(340): covar_dist", Replacement.NOTHING),
        ("gpytorch/kernels/linear_kernel.py(97): forward", Replacement.UNKNOWN),
    ],
)
def test_a_librarys_table_says_what_a_fix_puts_in_the_place_of_the_op(frame: str, replacement: Replacement) -> None:
    """Nothing, where an override or a setting leaves the op out; unknown where none does."""
    assert named(frame, chain="aten::equal > " + ITEM)().replacement is replacement
