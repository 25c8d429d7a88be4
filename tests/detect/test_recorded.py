"""The rules on what an H200 recorded: their own examples, and hundreds of single ops with the measured truth."""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from syncscan import load
from syncscan.detect import RuleDoc, catalogue, detect
from syncscan.model.finding import SyncPoint
from syncscan.model.trace import Category, Trace
from tests.each import each

SAMPLES = Path(__file__).parent.parent.parent / "sample_traces" / "rules"
FACTS = json.loads((SAMPLES / "rules_zoo.json").read_text(encoding="utf-8"))
TRUTH = {n.removeprefix("op::"): c for n, c in FACTS["cases"].items() if n.startswith("op::") and "blocks" in c}
SKIPPED = re.compile(r"^Not (run|recorded): ", re.MULTILINE)
RECORDED = [doc for doc in catalogue() if not SKIPPED.search(doc.sections["Use instead"])]
STILL = re.compile(r"^Still waits: ", re.MULTILINE)

CAUSES = {
    "READBACK": """
        int complex operator_index list_times math_sqrt arange_tensor full_tensor linspace_tensor zeros_tensor
        view_tensor add_alpha slice_from slice_to index_0d_bool select_0d masked_fill_cuda_value
        index_fill_cuda_value tensor_of_scalars tensor_of_scalars_cuda batch_norm_cumulative topk_k_tensor
        iterate_item numpy_scalar any_item type_float_tensor cpu_noncontiguous to_cpu_double copy_into_cpu
        copy_into_pinned_blocking torch_save state_dict_cpu max_plus_one flatnonzero_numpy prod_backward
        prod_dim_backward cumprod_backward hook_item lobpcg adafactor_step asgd_step asgd_single sgd_cuda_lr
        scaler_get_scale numpy_force pickle storage_tolist lbfgs stack_tolist round_tensor int_of_max range_loop
        zip_tolist dict_of_items count_by_mask set_of_tolist numpy_histogram expand_tensor_size narrow_tensor
        all_item cpu_contiguous_half norm_item max_tuple_item index_add_tensor_alpha pad_tensor_value
        loss_format_list
    """,
    "CTRL": """
        if_tensor while_tensor not_tensor assert_tensor and_tensors is_nonzero python_max python_sorted
        python_any in_list number_in_tensor equal any_over_mask equal_bool
    """,
    "LOG": """
        f_string str_format str_int_tensor repr_matrix logger_info warn_tensor loss_print
    """,
    "CHECK": """
        isfinite_if isnan_if anomaly inverse lu_factor svd svd_gesvda eigh eigvalsh eig eigvals pinv matrix_rank
        cond lstsq ldl_factor cholesky_batch norm_nuclear corrcoef istft normal_std_tensor allclose
        assert_close_far normal_distribution categorical bernoulli_distribution log_prob clip_grad_norm_error
        fake_quantize_channel observer_qparams sparse_invariants sparse_no_size torchmetrics_accuracy scaler_sgd
        svd_gesvd svd_gesvdj inv_batch solve_backward ldl_solve isnan_sum_item
    """,
    "PAGEABLE": """
        cuda_method to_cuda_half h2d_large_nonblocking copy_from_cpu module_to load_state_dict new_tensor
        as_tensor_list as_tensor_numpy from_numpy_to index_list index_numpy index_cpu_tensor index_cpu_mask
        index_put_cpu_rows assign_element assign_0d assign_element_2 assign_rows_number from_blob_like
        scalar_tensor
    """,
    "SHAPE": """
        nonzero_tuple mask_put_vector mask_put_0d_cuda unique_bool unique_counts unique_dim
        unique_consecutive_dim bincount_minlength repeat_interleave_method combinations matrix_exp_batch
        matrix_exp ctc_cpu_lengths segment_reduce to_sparse_csr sparse_bmm sparse_index_select sparse_softmax
        sparse_sum mode_long_rows jagged_unbind nested_strided_padded pack_cuda_lengths split_by_tolist
        tensor_split_cuda nms batched_nms moe_loop index_mask_backward masked_select_backward
        torchmetrics_unchecked sparse_embedding ctc_cudnn ctc_2d_device bincount_uint8 bincount_weights
        histogramdd sparse_adam one_hot_argmax len_of_nonzero mask_numel where_first argwhere_row
        unique_len sparse_add sparse_mm sparse_to_dense pad_packed
    """,
    "EXPLICIT": """
        graph_capture timed accelerator_synchronize default_stream_synchronize deferred_readback
    """,
}
"""Causes by the catalogue, of the ops that wait."""
CAUSE = {name: cause for cause, names in CAUSES.items() for name in names.split()}
WITHOUT_STACKS = {"loss_detach_item": "LOG", "torchmetrics_accuracy": "SHAPE"}
"""Where the ops alone mislead: `.detach().item()` looks like a format string, torchmetrics' checks like its work."""
AMBIGUOUS = {
    "other_idle_stream": "waits for work of its own stream alone, which shares the device with the queue",
    "empty_cache_used": "waits only while there is something to free, and the best of two runs had nothing",
}


@functools.cache
def recorded(name: str) -> dict[str, list[SyncPoint]]:
    """The sync points above information of a recording, by the case in whose scope they lie."""
    trace = load.load(SAMPLES / f"{name}.pt.trace.json.gz")
    points, warnings = detect(trace)
    assert warnings == ()
    matches = defaultdict(list)
    for point in points:
        if not point.diagnosis.intended:
            matches[_case(trace, point)].append(point)
    return matches


def _case(trace: Trace, point: SyncPoint) -> str:
    s = trace.slices
    around = (s.category == Category.ANNOTATION) & (s.ts <= point.ts) & (s.end >= point.end)
    return next((n for r in np.flatnonzero(around) if "::" in (n := trace.name(int(r)))), "")


def cases(kind: str) -> dict[str, list[SyncPoint]]:
    """All parts of a recording as one."""
    names = sorted(p.name.removesuffix(".pt.trace.json.gz") for p in SAMPLES.glob(f"{kind}.[0-9].pt.trace.json.gz"))
    return {case: points for name in names for case, points in recorded(name).items()}


@each("doc", RECORDED, lambda doc: doc.id)
def test_an_example_is_flagged_by_its_rule_and_what_to_use_instead_is_not(doc: RuleDoc) -> None:
    """A rule's documentation of its two examples is true on a GPU."""
    result = cases("rules")
    assert doc.id in {p.diagnosis.rule for p in result.get(f"example::{doc.id}", [])}
    if not STILL.search(doc.sections["Use instead"]):
        assert doc.id not in {p.diagnosis.rule for p in result.get(f"instead::{doc.id}", [])}


@each("name", [n for n in TRUTH if n not in AMBIGUOUS])
def test_an_op_is_flagged_if_the_host_really_waited(name: str) -> None:
    """The truth was measured without the profiler: whether the host was held until the queue had drained."""
    assert bool(cases("ops").get(f"op::{name}")) == TRUTH[name]["blocks"]


@each("name", [n for n in TRUTH if TRUTH[n]["blocks"] and n not in AMBIGUOUS])
def test_the_longest_wait_of_an_op_has_the_catalogues_cause(name: str) -> None:
    """Also without stacks: the recording of the ops has none."""
    worst = max(cases("ops")[f"op::{name}"], key=lambda p: p.end - p.ts)
    assert worst.diagnosis.cause.value == (WITHOUT_STACKS.get(name) or CAUSE[name])


def test_launch_blocking_is_recognised_in_a_real_trace() -> None:
    """Recorded with CUDA_LAUNCH_BLOCKING=1: one finding, although every launch waits."""
    points, _ = detect(load.load(SAMPLES / "launch_blocking.pt.trace.json.gz"))
    assert [p.diagnosis.rule for p in points] == ["launch-blocking"]


WORLD = {
    "all_reduce": "",
    "all_reduce_item": "collective-readback",
    "barrier": "barrier",
    "all_gather_object": "object-collective",
    "broadcast_object_list": "object-collective",
    "ddp_step": "",
    "ddp_unused": "unused-parameters",
    "fsdp_step": "",
    "fsdp_clip": "",
    "compiled_break": "graph-break",
}
"""The rule of each case of `world_zoo.py`, empty where nothing is found above information."""


@pytest.mark.parametrize("trace", ["world", "world.stacks"])
@each("name", WORLD)
def test_waits_of_distributed_and_compiled_code_are_distinguished(name: str, trace: str) -> None:
    """With stacks and without; DDP's own statistics in its first iterations are for information."""
    rules = {p.diagnosis.rule for p in recorded(trace).get(f"world::{name}", [])}
    assert rules == ({WORLD[name]} if WORLD[name] else set())


@pytest.mark.parametrize(("trace", "rule"), [("world", "explicit-sync"), ("world.stacks", "distributed")])
def test_fsdps_state_dict_needs_stacks_to_be_known(trace: str, rule: str) -> None:
    """Its device synchronizes look like the program's own where no frame tells."""
    assert {p.diagnosis.rule for p in recorded(trace)["world::fsdp_state_dict"]} == {rule}
