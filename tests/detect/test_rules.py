"""Each rule on the chain of ops that it is for, and on look-alikes that belong to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from syncscan.detect import catalogue, detect
from syncscan.detect.rule_set import RuleSet
from syncscan.detect.rules import RULES
from syncscan.model.finding import Cause, Confidence, Diagnosis, Removal, SyncPoint
from tests.builder import TraceBuilder
from tests.detect.test_rule_table import KNOWN
from tests.each import each

ITEM = "aten::item > aten::_local_scalar_dense"
BOOL = f"aten::is_nonzero > {ITEM}"
TO = "aten::to > aten::_to_copy > aten::copy_"
NODE = "autograd::engine::evaluate_function: {0} > {0} > "
H2D = "Memcpy HtoD (Pageable -> Device)"
H2D_PINNED = "Memcpy HtoD (Pinned -> Device)"
D2H = "Memcpy DtoH (Device -> Pageable)"
D2H_PINNED = "Memcpy DtoH (Device -> Pinned)"
FORMATTER = ["aten::isfinite", "aten::ne", "aten::__and__"]


@dataclass(frozen=True)
class Wait:
    """One wait: the ops around it, its copy (none: a bare synchronize), what came before and after, frames, scopes."""

    chain: str = ""
    copy: str = D2H_PINNED
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    frames: Sequence[str] = ()
    scopes: Sequence[str] = ()
    api: str = "cudaStreamSynchronize"
    size: int = 8
    calls_after: Sequence[str] = ()
    sync: bool = True

    def points(self, vendor: str = "cuda") -> tuple[SyncPoint, ...]:
        """Return the sync points of a trace that holds this wait alone."""
        t = TraceBuilder(vendor)
        t.step(0, 10_000)
        for depth, name in enumerate((*self.scopes, *self.frames)):
            (t.frame if name in self.frames else t.scope)(name, 10 + depth, 9_000 - depth)
        at = 20.0
        for name in self.before:
            t.op(name, at, at + 10)
            at += 20
        t.launch("busy", at=at, lasts=1000)
        at = self._wait(t, at + 10)
        for name in self.calls_after:
            t.call(name, at + 1, at + 2)
            at += 5
        for name in self.after:
            t.op(name, at + 5, at + 10)
            at += 20
        points, warnings = detect(t.trace())
        assert warnings == ()
        return points

    def _wait(self, t: TraceBuilder, at: float) -> float:
        end = t.free_at() + 20
        for name in filter(None, self.chain.split(" > ")):
            t.op(name, at, end)
        if self.copy and not self.sync:
            t.copy(self.copy, at=at + 1, blocks=True)
        elif self.copy:
            t.copy(self.copy, at=at + 1)
            t.events[-1]["args"]["bytes"] = self.size
        if self.sync:
            t.call(self.api, at + 5, end - 1)
        return end

    def named(self) -> Diagnosis:
        """The diagnosis of the one wait."""
        (point,) = self.points()
        return point.diagnosis


EXAMPLES: list[tuple[str, Wait]] = [
    ("fsdp-rate-limiter", Wait(copy="", api="cudaEventSynchronize", scopes=["FullyShardedDataParallel.rate_limiter"])),
    (
        "anomaly-mode",
        Wait(
            "autograd::engine::evaluate_function: MulBackward0 > " + ITEM,
            before=["aten::isnan", "aten::_is_any_true"],
        ),
    ),
    ("barrier", Wait(copy="", before=["c10d::barrier"])),
    ("barrier", Wait("c10d::barrier", copy="")),
    (
        "object-collective",
        Wait(TO, D2H, frames=["train.py(3): main", "torch/distributed/distributed_c10d.py(9): all_gather_object"]),
    ),
    ("unused-parameters", Wait("aten::copy_", D2H, after=["torch.distributed.ddp.reducer::copy_bucket_to_grad"])),
    ("object-collective", Wait(ITEM, before=["aten::empty", "aten::set_", "aten::to", "c10d::allgather_"])),
    ("ddp-statistics", Wait(copy="", api="cudaEventSynchronize", scopes=["DistributedDataParallel.forward"])),
    (
        "distributed",
        Wait(TO, D2H, frames=["train.py(3): main", "torch/distributed/fsdp/_state_dict_utils.py(9): _full"]),
    ),
    ("collective-readback", Wait(ITEM, before=["c10d::allreduce_"])),
    (
        "one-off",
        Wait("aten::copy_", H2D, frames=["train.py(3): main", "torch/nn/modules/module.py(2): load_state_dict"]),
    ),
    ("print-tensor", Wait("aten::masked_select > aten::nonzero", before=FORMATTER)),
    ("print-tensor", Wait(BOOL, before=[*FORMATTER, "aten::masked_select", "aten::abs", "aten::ceil", "aten::ne"])),
    (
        "print-tensor",
        Wait(ITEM, before=["aten::reshape", "aten::unbind", "aten::detach", "aten::item", "aten::detach"]),
    ),
    (
        "print-tensor",
        Wait(BOOL, frames=["train.py(3): main", "torch/_tensor.py(5): __repr__", "torch/_tensor_str.py(9): _str"]),
    ),
    ("log-scalar", Wait(ITEM, before=["aten::mean", "aten::detach"])),
    ("log-scalar", Wait(ITEM, frames=["train.py(3): main", "tqdm/std.py(9): set_postfix"])),
    (
        "metric-validation",
        Wait(
            "aten::_unique2 > " + ITEM,
            frames=["train.py(3): main", "torchmetrics/functional/stat_scores.py(5): _tensor_validation"],
        ),
    ),
    ("distribution-args", Wait(BOOL, before=["aten::gt", "aten::_is_all_true"])),
    (
        "distribution-args",
        Wait(BOOL, before=["aten::all"], frames=["a.py(1): f", "torch/distributions/normal.py(9): __init__"]),
    ),
    (
        "grad-scaler",
        Wait(ITEM, before=["aten::_amp_foreach_non_finite_check_and_unscale_"], after=["aten::_amp_update_scale_"]),
    ),
    ("clip-grad", Wait(BOOL, before=["aten::isnan", "aten::isinf", "aten::logical_or"])),
    ("nan-guard", Wait(BOOL, before=["aten::isnan"])),
    ("nan-guard", Wait(ITEM, before=["aten::isfinite", "aten::all"])),
    ("generation-stop", Wait(BOOL, frames=["a.py(1): f", "transformers/generation/utils.py(9): _sample"])),
    ("quantization", Wait("aten::fake_quantize_per_channel_affine > " + ITEM)),
    ("quantization", Wait(BOOL, before=["aten::eq"], after=["aten::zeros_like", "aten::min", "aten::zeros_like"])),
    ("checkpoint-save", Wait(TO, D2H, frames=["train.py(3): main", "torch/serialization.py(9): save"])),
    ("optimizer-readback", Wait(ITEM, scopes=["Optimizer.step#Adafactor.step"])),
    ("allclose", Wait("aten::allclose > " + ITEM)),
    ("allclose", Wait(BOOL, before=["aten::isclose", "aten::all"])),
    ("allclose", Wait(ITEM, frames=["a.py(1): f", "torch/testing/_comparison.py(9): assert_close"])),
    ("item", Wait(ITEM, frames=["a.py(1): f", "torch/testing/_creation.py(9): make_tensor"])),
    ("graph-break", Wait("Torch-Compiled Region: 0/0 > " + ITEM)),
    (
        "graph-break",
        Wait(
            ITEM, frames=["train.py(3): main", "torch/_dynamo/eval_frame.py(9): compile_wrapper", "net.py(7): forward"]
        ),
    ),
    (
        "item",
        Wait(
            ITEM,
            frames=[
                "torch/_dynamo/eval_frame.py(9): compile_wrapper",
                "net.py(7): forward",
                "torch/_dynamo/eval_frame.py(8): _fn",
                "net.py(2): disabled",
            ],
        ),
    ),
    ("graph-break", Wait(ITEM, before=["Torch-Compiled Region: 0/0"], after=["Torch-Compiled Region: 1/0"])),
    ("pin-memory", Wait(copy="", api="cudaHostAlloc")),
    ("empty-cache", Wait(copy="", api="cudaFree")),
    ("allocator", Wait("aten::empty", copy="", api="cudaFree")),
    ("argument-check", Wait("aten::cov > aten::equal > " + ITEM)),
    ("argument-check", Wait(BOOL, frames=["a.py(1): f", "torch/nn/functional.py(9): gaussian_nll_loss"])),
    ("sparse-invariants", Wait("aten::_validate_sparse_coo_tensor_args > " + ITEM)),
    ("linalg-check", Wait("aten::linalg_inv > aten::_linalg_check_errors > " + ITEM)),
    ("linalg-check", Wait("aten::linalg_svd > aten::_linalg_svd", D2H)),
    ("unique", Wait("aten::_unique2 > " + ITEM)),
    ("unique", Wait("aten::unique_dim", copy="")),
    ("bincount", Wait("aten::bincount > " + TO, D2H)),
    ("bincount", Wait("aten::bincount > " + ITEM)),
    ("histc", Wait("aten::histc > " + TO, D2H)),
    ("one-hot", Wait("aten::one_hot > " + ITEM)),
    ("repeat-interleave", Wait("aten::repeat_interleave > aten::repeat_interleave > " + ITEM)),
    ("ctc-loss", Wait("aten::ctc_loss > " + TO, D2H)),
    ("coalesce", Wait("aten::coalesce > aten::_coalesce", copy="")),
    ("nested-tensor", Wait("aten::to_padded_tensor > " + TO, D2H)),
    ("nms", Wait("torchvision::nms > aten::masked_select > aten::nonzero")),
    ("split-sizes", Wait(TO, D2H, after=["aten::split_with_sizes"])),
    ("size-inside-op", Wait("aten::combinations > aten::masked_select > aten::nonzero")),
    ("packed-sequence", Wait(TO, D2H, after=["aten::_pack_padded_sequence"])),
    ("prod-backward", Wait(NODE.format("CumprodBackward0") + "aten::any > " + ITEM)),
    ("sparse-op", Wait("aten::to_sparse > aten::_to_sparse > aten::nonzero")),
    ("sparse-op", Wait("aten::bmm", copy="", api="cudaDeviceSynchronize")),
    ("masked-select", Wait("aten::masked_select > aten::nonzero")),
    ("index-backward", Wait(NODE.format("IndexBackward0") + "aten::_index_put_impl_ > aten::nonzero")),
    ("boolean-assign", Wait("aten::index_put_ > aten::_index_put_impl_ > aten::nonzero")),
    ("boolean-index", Wait("aten::index > aten::nonzero")),
    ("nonzero", Wait("aten::nonzero")),
    ("nonzero", Wait("aten::where > aten::nonzero_numpy > aten::nonzero")),
    ("fill-value", Wait("aten::masked_fill_ > " + ITEM)),
    ("equal", Wait("aten::equal > " + ITEM)),
    ("batch-norm-momentum", Wait(ITEM, before=["aten::add_"], after=["aten::batch_norm"])),
    ("tensor-of-tensors", Wait(ITEM, before=["aten::empty"], after=["aten::to", "aten::lift_fresh"])),
    ("contains", Wait(ITEM, before=["aten::eq", "aten::any"])),
    ("tensor-bool", Wait(BOOL, before=["aten::gt"])),
    ("tensor-index", Wait(ITEM, after=["aten::slice"])),
    ("number-argument", Wait("aten::linspace > " + ITEM)),
    ("item", Wait(ITEM)),
    ("tolist", Wait(TO, D2H, before=["aten::resolve_conj", "aten::resolve_neg"])),
    ("scalar-assign", Wait("aten::index_put_ > aten::_index_put_impl_ > " + TO, H2D)),
    ("scalar-assign", Wait("aten::copy_", H2D, before=["aten::select"])),
    ("cpu-index", Wait("aten::index > " + TO, H2D, size=64)),
    ("cpu-index", Wait(TO, H2D, after=["aten::lift_fresh", "aten::index"], size=64)),
    ("tensor-constructor", Wait(TO, H2D, after=["aten::lift_fresh", "aten::detach_"])),
    ("to-device", Wait(TO, H2D, size=4096)),
    ("to-device", Wait(TO, H2D_PINNED, size=4096)),
    ("pageable-readback", Wait("aten::copy_", D2H, sync=False)),
    ("cpu", Wait(TO, D2H)),
    ("timing", Wait(copy="", api="cudaDeviceSynchronize", calls_after=["cudaEventElapsedTime"])),
    ("timing", Wait(copy="", api="cudaEventSynchronize", calls_after=["cudaEventQuery", "cudaEventQuery", "INVALID"])),
    ("timing", Wait(copy="", api="hipEventSynchronize", calls_after=["hipEventQuery", "hipEventQuery", "INVALID"])),
    ("timing", Wait(copy="", api="hipEventSynchronize", calls_after=["hipStreamIsCapturing", "hipEventElapsedTime"])),
    ("explicit-sync", Wait(copy="", api="cudaDeviceSynchronize")),
    ("explicit-sync", Wait(copy="", api="urQueueFinish")),
    ("explicit-sync", Wait(copy="", api="cudaStreamSynchronize")),
    ("explicit-sync", Wait(copy="", api="cudaEventSynchronize")),
    ("module-loading", Wait("aten::mm", copy="", api="cudaFuncSetAttribute")),
    ("module-loading", Wait(copy="", api="hipFuncSetAttribute")),
    ("split-sizes", Wait(TO, D2H, after=["aten::index", "c10d::alltoall_base_"])),
    ("split-sizes", Wait(TO, D2H, after=["aten::to", "_c10d_functional::all_to_all_single"])),
    ("unclassified", Wait("mylib::fused", copy="")),
]


@each(("rule", "wait"), EXAMPLES, ids=[f"{rule}-{i}" for i, (rule, _) in enumerate(EXAMPLES)])
def test_the_chain_leads_to_the_rule(rule: str, wait: Wait) -> None:
    """A wait with these ops, copies and frames is named by this rule, and has its words."""
    diagnosis = wait.named()
    assert diagnosis.rule == rule
    assert all([diagnosis.title, diagnosis.why, diagnosis.fix, diagnosis.when_fine])


def test_every_rule_has_an_example_here() -> None:
    """A rule that nothing leads to would be dead.

    Launch blocking is a matter of the whole trace (test_calls.py), polling of many calls (test_polling.py).
    """
    with_example = {rule for rule, _ in EXAMPLES} | {rule for rule, *_ in KNOWN}
    assert {doc.id for doc in catalogue()} - with_example == {"launch-blocking", "polling"}


CLOSURE = ["train.py(3): main", "torch/optim/adam.py(9): step", "lightning/pytorch/plugins/precision.py(5): closure"]

LOOKALIKES: list[tuple[str, str, Wait]] = [
    (
        "with stacks, a value after detach is the program's",
        "item",
        Wait(ITEM, before=["aten::detach"], frames=["a.py(1): f"]),
    ),
    (
        "a hook that asks whether a gradient is NaN is no anomaly mode: the engine has no frames",
        "pyro",
        Wait(
            "autograd::engine::evaluate_function: MulBackward0 > " + BOOL,
            before=["aten::isnan", "aten::any"],
            frames=["pyro/util.py(130): <lambda>", "pyro/util.py(135): warn_if_nan"],
        ),
    ),
    ("a hook's item is no anomaly mode", "item", Wait("autograd::engine::evaluate_function: MulBackward0 > " + ITEM)),
    ("x[mask] alone isn't printing", "masked-select", Wait("aten::masked_select > aten::nonzero", before=["aten::gt"])),
    ("any() read back isn't membership", "item", Wait(ITEM, before=["aten::gt", "aten::any"])),
    (
        "item() by name is no index, whatever follows",
        "item",
        Wait(ITEM, after=["aten::slice"], frames=["a.py(1): f", "<built-in method item of Tensor object at 0x1>"]),
    ),
    (
        "index_put of rows from the host is no single number",
        "cpu-index",
        Wait("aten::index_put_ > aten::_index_put_impl_ > " + TO, H2D, size=32),
    ),
    (
        "module code under DDP's frame is the module's",
        "item",
        Wait(ITEM, frames=["torch/nn/parallel/distributed.py(5): forward", "model.py(3): forward"]),
    ),
    (
        "the same region twice is no graph break",
        "item",
        Wait(ITEM, before=["Torch-Compiled Region: 0/0"], after=["Torch-Compiled Region: 0/0"]),
    ),
    (
        "torchmetrics' own computation is no validation",
        "bincount",
        Wait("aten::bincount > " + ITEM, frames=["a.py(1): f", "torchmetrics/functional/stat_scores.py(5): _update"]),
    ),
    (
        "a value read inside the compiled graph breaks nothing",
        "item",
        Wait("Torch-Compiled Region: 0/0 > ## Call CompiledFxGraph abc ## > " + ITEM),
    ),
    ("a copy on the autograd thread without the reducer is the program's", "cpu", Wait("aten::copy_", D2H)),
    ("a dense product's wait is none of sparse tensors", "unclassified", Wait("aten::mm", copy="")),
    (
        "an element that is read by name is no index of what follows",
        "item",
        Wait(ITEM, before=["aten::randn", "aten::select"], after=["aten::select"]),
    ),
    (
        "a large copy before an all-to-all is no list of sizes",
        "cpu",
        Wait(TO, D2H, after=["nccl:all_to_all"], size=1 << 20),
    ),
    (
        "torchvision's save_image saves no checkpoint",
        "cpu",
        Wait(TO, D2H, frames=["main.py(265): <module>", "torchvision/utils.py(120): save_image"]),
    ),
    (
        "a trainer's save_checkpoint does",
        "checkpoint-save",
        Wait(TO, D2H, frames=["main.py(9): <module>", "ultralytics/engine/trainer.py(5): save_model"]),
    ),
    (
        "a library's function save may save a picture",
        "cpu",
        Wait(
            TO,
            D2H,
            frames=[
                "main.py(9): <module>",
                "site-packages/ultralytics/engine/results.py(7): save",
                "site-packages/ultralytics/engine/results.py(5): plot",
            ],
        ),
    ),
    (
        "in a file for checkpoints it saves one",
        "checkpoint-save",
        Wait(TO, D2H, frames=["main.py(9): <module>", "site-packages/timm/utils/checkpoint_saver.py(5): _save"]),
    ),
    (
        "a constructor that is indexed at once copies its data, and no index",
        "tensor-constructor",
        Wait(TO, H2D, after=["aten::lift_fresh", "aten::detach_", "aten::index"], size=8000),
    ),
    ("a scope may be called barrier", "explicit-sync", Wait(copy="", scopes=["barrier-free"])),
]


@each(("fact", "rule", "wait"), LOOKALIKES, ids=[fact for fact, _, _ in LOOKALIKES])
def test_look_alikes_keep_their_own_rule(fact: str, rule: str, wait: Wait) -> None:
    """A call that resembles a special cause gets the general one."""
    assert wait.named().rule == rule


def test_what_is_copied_around_an_index_may_be_the_index_or_what_is_indexed() -> None:
    """`x[numpy_index]` and `from_numpy(table).to(device)[t]` make the same ops: the fix speaks of both."""
    either = Wait(TO, H2D, before=["aten::lift_fresh"], after=["aten::index"], size=8000).named()
    assert (either.rule, either.confidence) == ("cpu-index", Confidence.MEDIUM)
    assert "If it is what is indexed" in either.fix
    assert either.copied is not None
    assert "the table to the device once" in either.copied.fix
    alist = Wait(TO, H2D, after=["aten::lift_fresh", "aten::index"], size=24).named()
    assert (alist.confidence, alist.copied) == (Confidence.HIGH, None)


def test_data_too_large_for_constants_are_taken_as_new() -> None:
    """A replay buffer's batch isn't made once and kept."""
    lifted = ["aten::lift_fresh", "aten::detach_"]
    small = Wait(TO, H2D, after=lifted, size=8).named().fix
    assert small.startswith("Create it once")
    assert "If the values are new in each step" in small
    assert Wait(TO, H2D, after=lifted, size=8192).named().fix.startswith("New data in each step")


def test_of_a_line_s_copies_most_tell_whether_they_are_constants() -> None:
    """A replay buffer copies large observations and small rewards."""
    t = TraceBuilder()
    t.step(0, 10_000)
    with t.frame("buffers.py(246): to_torch", 5, 9_900):
        for k, size in enumerate((512, 2048, 2048)):
            end = t.sync(TO, at=100 + 1_000 * k, wait=300, copy=H2D)
            next(event for event in reversed(t.events) if event.get("name") == H2D)["args"]["bytes"] = size
            t.op("aten::lift_fresh", end + 1, end + 5)
    points, _ = detect(t.trace())
    assert {point.diagnosis.fix[:21] for point in points} == {"New data in each step"}


def test_a_transformer_that_asks_whether_its_mask_is_causal_can_be_reported() -> None:
    """By an argument of the call."""
    frames = [
        "model.py(142): forward",
        "torch/nn/modules/transformer.py(511): forward",
        "torch/nn/modules/transformer.py(1252): _detect_is_causal_mask",
    ]
    diagnosis = Wait(BOOL, before=["aten::eq", "aten::all"], frames=frames).named()
    assert diagnosis.rule == "tensor-bool"
    assert "is_causal=True" in diagnosis.fix


def test_calls_of_one_line_get_one_rule() -> None:
    """One of five is followed later than the others by what takes its number."""
    t = TraceBuilder()
    t.step(0, 10_000)
    with t.frame("tal.py(564): f", 5, 9_900):
        for k in range(5):
            begin = 100 + 1_000 * k
            t.sync(ITEM, at=begin, wait=300)
            end = max(event["ts"] + event["dur"] for event in t.events if event.get("name") == "aten::item")
            t.op("aten::arange", end + (20 if k == 3 else 1), end + 40)
    points, _ = detect(t.trace())
    assert {point.diagnosis.rule for point in points} == {"number-argument"}


def in_an_optimizers_step(*frames: str, optimizer: str = "Adam", goes_backward: bool = True) -> Diagnosis:
    """The read of a number in an optimizer's step, which runs a backward pass too where it is given a closure."""
    t = TraceBuilder()
    t.step(0, 10_000)
    t.scope(f"Optimizer.step#{optimizer}.step", 10, 9_000)
    for depth, name in enumerate(frames):
        t.frame(name, 11 + depth, 8_000 - depth)
    t.sync(ITEM, at=100, wait=300)
    if goes_backward:
        with t.thread("pt_autograd_0"), t.backward("MulBackward0", 8_100, 8_200):
            t.launch(at=8_110, lasts=10)
    (point,), _ = detect(t.trace())
    return point.diagnosis


@pytest.mark.parametrize(
    ("rule", "frames"),
    [
        ("item", ()),
        ("item", (*CLOSURE, "model.py(7): training_step", "<built-in method item of Tensor object at 0x1>")),
        ("optimizer-readback", ("train.py(3): main", "torch/optim/adam.py(9): step")),
    ],
)
def test_a_closure_in_an_optimizers_step_is_the_programs(rule: str, frames: tuple[str, ...]) -> None:
    """Lightning runs the whole training step in it; what torch's own optimizer reads beside that is still its own."""
    assert in_an_optimizers_step(*frames).rule == rule


def test_lbfgs_reads_the_loss_of_its_closure() -> None:
    """Its line search reads the loss: likely so, without frames that prove it."""
    diagnosis = in_an_optimizers_step(optimizer="LBFGS")
    assert (diagnosis.rule, diagnosis.confidence) == ("optimizer-readback", Confidence.MEDIUM)
    assert diagnosis.fix == "LBFGS reads by design: choose another optimizer, or step less often."


def test_without_a_closure_an_optimizers_step_reads_for_itself() -> None:
    """No backward pass runs in it."""
    assert in_an_optimizers_step(goes_backward=False).rule == "optimizer-readback"


@pytest.mark.parametrize(
    ("title", "wait"),
    [
        (".item() waits for a number", Wait(ITEM, before=["aten::mean"])),
        (".item() waits for one element of a tensor", Wait(ITEM, before=["aten::select"])),
        (".item() waits for the result of argmax", Wait(ITEM, before=["aten::argmax", "aten::squeeze"])),
        (".item() waits for a number", Wait(ITEM, before=["aten::argmax", "aten::eq", "aten::sum"])),
    ],
)
def test_a_number_is_called_what_it_is(title: str, wait: Wait) -> None:
    """The kind of value decides the advice: an action isn't summed up on the device."""
    assert wait.named().title == title


def test_what_is_compared_with_itself_is_asked_for_nan() -> None:
    """`p.sum() != p.sum()` shows as the same ops twice; a comparison with something else doesn't."""
    twice = Wait(BOOL, before=["aten::sum", "aten::select", "aten::sum", "aten::select", "aten::sum", "aten::ne"])
    other = Wait(BOOL, before=["aten::select", "aten::sum", "aten::max", "aten::ne"])
    assert ["NaN" in wait.named().why for wait in (twice, other)] == [True, False]


def test_a_loader_is_advised_only_where_there_is_one() -> None:
    """A loader can't pin what it doesn't load: such a tensor is most likely rebuilt from the same values each time."""
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    fixes = [Wait(TO, H2D, size=4096, before=before).named().fix for before in ((loader,), ())]
    assert [fix.startswith("A batch: DataLoader(pin_memory=True)") for fix in fixes] == [True, False]
    assert all("until the copy has run" in fix for fix in fixes)


def test_a_fix_for_a_librarys_code_says_that_it_is_one() -> None:
    """Nobody edits gpytorch: what a caller can do comes first. Torch's own code and the program's are as they were."""
    equal = "aten::equal > " + ITEM
    library = Wait(equal, frames=["train.py(3): main", "gpytorch/lazy/matern.py(9): forward"]).named()
    own = Wait(equal, frames=["train.py(3): main", "torch/functional.py(9): equal"]).named()
    assert library.fix.startswith("It is in forward of gpytorch: look for an argument or setting that avoids it")
    assert library.fix.endswith(own.fix)


@each(("rule", "wait"), EXAMPLES, ids=[f"{rule}-{i}" for i, (rule, _) in enumerate(EXAMPLES)])
def test_an_asynchronous_copy_comes_with_what_must_outlive_it(rule: str, wait: Wait) -> None:
    """A result that is read before its event is garbage, and so is a source that is changed before the copy has run."""
    diagnosis = wait.named()
    if diagnosis.removal in (Removal.ASYNC_COPY, Removal.PINNED_COPY) and "non_blocking" in diagnosis.fix:
        assert "event" in diagnosis.fix or "until the copy has run" in diagnosis.fix


@pytest.mark.parametrize(
    ("chain", "cause"),
    [("aten::nonzero", Cause.SHAPE), (ITEM, Cause.READBACK), (BOOL, Cause.CTRL), (TO, Cause.READBACK)],
)
def test_rocm_waits_have_the_same_causes(chain: str, cause: Cause) -> None:
    """A blocking read-back is one `hipMemcpyWithStream` there, with no kind of memory in its name."""
    t = TraceBuilder("rocm")
    with t.step(0, 5000):
        t.launch("busy", at=5, lasts=1000)
        t.sync(chain, at=20)
    (point,), _ = detect(t.trace())
    assert (point.api, point.diagnosis.cause) == ("hipMemcpyWithStream", cause)


def test_intended_waits_are_marked() -> None:
    """FSDP's rate limiter is reported for information only."""
    assert Wait(copy="", api="cudaEventSynchronize", scopes=["FullyShardedDataParallel.rate_limiter"]).named().intended


def test_a_number_read_at_the_end_of_a_step_is_a_number() -> None:
    """Nothing follows it but the next step: no rule fails over that."""
    t = TraceBuilder()
    t.step(0, 1011)
    t.launch("busy", at=1, lasts=1000)
    for op in ("aten::item", "aten::_local_scalar_dense"):
        t.op(op, 10, 1010)
    t.copy(D2H_PINNED, at=12)
    t.call("cudaStreamSynchronize", 14, 1009)
    t.step(1011, 2000)
    (point,), warnings = detect(t.trace())
    assert (point.diagnosis.rule, warnings) == ("item", ())


def test_allocating_is_noted_and_freeing_is_found() -> None:
    """`cudaMalloc` doesn't wait for queued work; `cudaFree` drains the device."""
    t = TraceBuilder()
    with t.step(0, 5000):
        with t.op("aten::empty", 10, 400):
            t.call("cudaMalloc", 20, 300)
        with t.op("aten::empty", 500, 900):
            t.call("cudaFree", 520, 800)
    points, _ = detect(t.trace())
    assert [(p.api, p.diagnosis.intended) for p in points] == [("cudaMalloc", True), ("cudaFree", False)]


def freed(*before: str, again: bool = False, busy: float = 1) -> tuple[str, bool]:
    """Which rule names a cudaFree inside of a convolution, and whether it is intended.

    Args:
        before: calls of the same op before it.
        again: whether the op ran before.
        busy: how long the device is busy for it, µs.
    """
    t = TraceBuilder()
    with t.step(0, 9000):
        t.op("aten::cudnn_convolution", 10, 11) if again else None
        t.launch("kernel", at=15, lasts=busy)
        with t.op("aten::cudnn_convolution", 20, 6000):
            for k, api in enumerate(before):
                t.call(api, 21 + 2 * k, 22 + 2 * k)
            t.call("cudaFree", 100, 5000)
    points, _ = detect(t.trace())
    (point,) = (p for p in points if p.api == "cudaFree" and p.end == 5_000_000)
    return point.diagnosis.rule, point.diagnosis.intended


def test_a_library_that_sets_itself_up_is_no_sync_of_the_steps() -> None:
    """Its cudaFree waits for nothing and comes in the first run of an op, whatever the library took before."""
    assert freed() == ("one-off", True)
    assert freed("cudaMalloc", "cudaMemsetAsync", "cudaHostGetDevicePointer") == ("one-off", True)


@pytest.mark.parametrize(
    ("before", "again", "busy"),
    [
        (["cudaMalloc"], False, 1),
        (["cudaMalloc", "cudaDeviceSynchronize", "cudaFree", "cudaFree"], False, 1),
        ([], True, 1),
        ([], False, 4980),
    ],
)
def test_what_the_allocator_frees_is_the_steps(before: list[str], again: bool, busy: float) -> None:
    """Behind an allocation that failed, in a later run of the op, or where the device had to drain."""
    assert freed(*before, again=again, busy=busy) == ("allocator", False)


def test_a_rule_that_raises_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the report stands: the next rule that fits names the wait."""

    def broken(call: object) -> None:
        raise ZeroDivisionError("oops")

    broken_rules = tuple(replace(rule, match=broken) if rule.id == "nonzero" else rule for rule in RULES)
    monkeypatch.setattr("syncscan.detect.RuleSet", lambda: RuleSet(broken_rules))
    t = TraceBuilder()
    with t.step(0, 5000):
        t.sync("aten::nonzero", at=20, wait=100)
    (point,), warnings = detect(t.trace())
    assert point.diagnosis.rule == "cpu"
    assert warnings == ("The rule nonzero failed (ZeroDivisionError: oops) and was skipped.",)
