"""Each thing that a program may ask of a GPU is asked under the pretence: it works, and waits where it should."""

from __future__ import annotations

import inspect
import io
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import syncscan

torch = pytest.importorskip("torch")
nn: Any = torch.nn
CASES: dict[str, tuple[Callable[[], object], set[str]]] = {}


def case(*rules: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """A function that asks something, and the rules of the waits in it."""

    def taken(function: Callable[[], object]) -> Callable[[], object]:
        CASES[function.__name__] = (function, set(rules))
        return function

    return taken


def linear() -> Any:
    return nn.Linear(3, 3, device="cuda")


def backward() -> Any:
    net = linear()
    net(torch.ones(2, 3, device="cuda")).sum().backward()
    return net


def stepped(name: str, **options: bool) -> Callable[[], None]:
    """Two steps of an optimizer."""

    def run() -> None:
        sparse = name == "SparseAdam"
        net = nn.Embedding(4, 3, sparse=True, device="cuda") if sparse else linear()
        x = torch.zeros(2, dtype=torch.long, device="cuda") if sparse else torch.ones(2, 3, device="cuda")
        parameters = [p for p in net.parameters() if name != "Muon" or p.ndim == 2]
        few: dict[str, Any] = {"max_iter": 2} if name == "LBFGS" else {}
        optimizer = getattr(torch.optim, name)(parameters, lr=1e-2, **options, **few)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            return loss

        for _ in range(2):
            closure()
            optimizer.step(closure) if name == "LBFGS" else optimizer.step()

    return run


READS = {
    "ASGD": {"optimizer-readback", "tensor-constructor"},
    "ASGD.foreach": {"optimizer-readback", "tensor-constructor"},
    "ASGD.capturable": {"tensor-constructor"},
    "Adafactor": {"optimizer-readback"},
    "Adafactor.foreach": {"optimizer-readback"},
    "LBFGS": {"optimizer-readback"},
    "SparseAdam": {"coalesce"},
}
"""Optimizers that read their device, by torch's source; the others don't."""
for found in sorted(vars(torch.optim)):
    kind = getattr(torch.optim, found)
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)) or found == "Optimizer":
        continue
    CASES[found] = (stepped(found), READS.get(found, set()))
    for way in ("foreach", "fused", "capturable"):
        on_cpu_alone = way == "fused" and "cuda_unsupported=True" in inspect.getsource(
            inspect.getmodule(kind)
        )  # Adagrad's, up to 2.12
        if way in inspect.signature(kind).parameters and not on_cpu_alone:
            CASES[f"{found}.{way}"] = (stepped(found, **{way: True}), READS.get(f"{found}.{way}", set()))


@case("item")
def functional() -> None:
    net, x = linear(), torch.ones(4, 3, device="cuda")

    def loss(parameters: Any, x: Any) -> Any:
        return torch.func.functional_call(net, parameters, (x,)).sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(dict(net.named_parameters()), x)
    assert per_sample["weight"].is_cuda
    assert torch.func.jacrev(lambda x: x * x)(x[0]).is_cuda
    per_sample["weight"].sum().item()


@case()
def checkpointing() -> None:
    from torch.utils.checkpoint import checkpoint

    net = linear()
    for reentrant in (False, True):
        x = torch.ones(2, 3, device="cuda", requires_grad=True)
        checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        assert x.grad.is_cuda


@case()
def clipping() -> None:
    net = backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
    nn.utils.clip_grad_value_(net.parameters(), 1.0)
    nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(net.parameters()) * 2, net.parameters())


@case("clip-grad")
def clipping_with_a_check() -> None:
    nn.utils.clip_grad_norm_(backward().parameters(), 1.0, error_if_nonfinite=True)


@case()
def parametrized() -> None:
    for around in (nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm):
        around(linear())(torch.ones(2, 3, device="cuda")).sum().backward()


@case()
def recurrent() -> None:
    lstm = nn.LSTM(3, 4, batch_first=True, device="cuda")
    x, lengths = torch.ones(2, 5, 3, device="cuda"), torch.tensor([5, 3])
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
    padded, back = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    assert (padded.is_cuda, back.is_cuda) == (True, False)
    padded.sum().backward()
    with pytest.raises(RuntimeError, match="1D CPU int64"):
        nn.utils.rnn.pack_padded_sequence(x, lengths.to("cuda"), batch_first=True, enforce_sorted=False)


CASES["recurrent"][1].add("to-device")  # the lengths that a GPU refuses


@case()
def attention() -> None:
    q = torch.ones(2, 2, 8, 4, device="cuda", requires_grad=True)
    mask = torch.ones(8, 8, dtype=torch.bool, device="cuda")
    for options in ({"is_causal": True}, {"attn_mask": mask}):
        nn.functional.scaled_dot_product_attention(q, q, q, **options).sum().backward()


@case("item")
def compiled() -> None:
    torch.compile(lambda x: x.sum().item())(torch.ones(2, device="cuda"))


@case("checkpoint-save", "one-off")
def saved() -> None:
    file, net = io.BytesIO(), backward()
    torch.save(net.state_dict(), file)
    for place, there in ((None, True), ("cpu", False), ("cuda:0", True), ({"cuda:0": "cpu"}, False)):
        file.seek(0)
        assert torch.load(file, map_location=place)["weight"].is_cuda is there
    file.seek(0)
    net.load_state_dict(torch.load(file, map_location="cpu"))
    assert net.weight.is_cuda


@case("empty-cache")
def memory() -> None:
    cuda = torch.cuda
    for name in vars(cuda.memory):
        if name.startswith(("memory_", "max_memory_", "reset_")) and name in vars(cuda):
            getattr(cuda, name)()
    cuda.memory._record_memory_history(enabled=None)
    cuda.mem_get_info()
    cuda.empty_cache()
    with cuda.device(0), cuda.device_of(torch.ones(1, device="cuda")):
        cuda.manual_seed_all(0)


@case("explicit-sync", "timing")
def streams() -> None:
    stream = torch.cuda.Stream()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(stream):
        begin.record()
        end.record(stream)
    torch.cuda.current_stream().wait_stream(stream)
    stream.wait_event(begin)
    assert end.query()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0
    stream.synchronize()


@case("grad-scaler")
def scaled() -> None:
    net, scaler = linear(), torch.amp.GradScaler("cuda")
    for options in ({}, {"fused": True}):
        optimizer = torch.optim.Adam(net.parameters(), **options)
        with torch.autocast("cuda", torch.float16):
            loss = net(torch.ones(2, 3, device="cuda")).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@case()
def loading() -> None:
    data = torch.utils.data.TensorDataset(torch.ones(4, 3))
    for (batch,) in torch.utils.data.DataLoader(data, 2, pin_memory=True, num_workers=2):
        assert batch.is_pinned()
        assert batch.to("cuda", non_blocking=True).is_cuda


@case("item")
def custom_function() -> None:
    class Square(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            gradient.sum().item()
            return 2 * ctx.saved_tensors[0] * gradient

    Square.apply(torch.ones(3, device="cuda", requires_grad=True)).sum().backward()


@case()
def half_that_no_cpu_has() -> None:
    """Each of them runs on a GPU."""
    x = torch.rand(1, 2, 4, 4, 4, device="cuda", dtype=torch.half, requires_grad=True)
    y = nn.functional.rrelu(nn.functional.avg_pool3d(x, 2) - 0.5, training=True)
    y.backward(torch.ones_like(y))
    losses = nn.functional.multi_margin_loss(x.flatten(1), torch.zeros(1, dtype=torch.long, device="cuda"))
    waves = torch.fft.irfft(torch.fft.rfft(x.detach()))
    assert [t.dtype for t in (y, x.grad, losses, waves)] == [torch.half] * 4
    assert [t.is_cuda for t in (y, x.grad, losses, waves)] == [True] * 4


@case("cpu-index", "scalar-assign", "tensor-constructor")
def indexed_by_lists_and_by_tensors_of_the_host() -> None:
    """A list's tensor stays on the device for the backward pass; a tensor doesn't, and is copied once more."""
    x, at = torch.ones(5, device="cuda", requires_grad=True), torch.tensor([0, 2])
    x[[0, 2]].sum().backward()
    x[at].sum().backward()
    torch.zeros(5, device="cuda")[[1, 2]] = 1.0
    x[torch.tensor([1], device="cuda")].sum().backward()
    torch.func.vmap(lambda row: row[[0, 1]])(torch.ones(2, 5, device="cuda"))


@case("fill-value", "masked-select")
def filled_with_what_is_trained() -> None:
    value = torch.ones((), device="cuda", requires_grad=True)
    x, mask = torch.ones(3, device="cuda"), torch.ones(3, device="cuda") > 0
    x.masked_fill(mask, value).sum().backward()
    torch.where(mask, value, x).sum().backward()
    x.requires_grad_().masked_fill(mask, 0.0).sum().backward()


@case("cpu-index", "linalg-check", "masked-select", "prod-backward", "tensor-constructor")
def some_wait_and_the_like_do_not() -> None:
    """Ops that blocked a GPU, each beside one that didn't: from torch's own op database (H200, torch 2.11)."""
    empty, single = torch.ones(0, 3, 3, device="cuda"), torch.ones(1, device="cuda", requires_grad=True)
    for op in (torch.linalg.svdvals, torch.linalg.pinv, torch.linalg.cholesky, torch.cholesky):
        op(empty)
    torch.linalg.svdvals(torch.eye(3, device="cuda"))
    single.cumprod(0).backward()
    single.sum().prod(0).backward()
    four = torch.ones(4, device="cuda", requires_grad=True)
    four.prod(0).backward()
    offsets = torch.tensor([0, 4], device="cuda")
    torch.segment_reduce(four, "max", offsets=offsets, axis=0)
    four[torch.tensor([0, 2])].sum().backward()
    mask = torch.tensor([True, False, True, False], device="cuda")
    four.masked_scatter(mask, torch.zeros(4, device="cuda", requires_grad=True)).sum().backward()


IN_A_COPY_THAT_WAITS = "packed.copy_(tensor)" in inspect.getsource(torch.autograd.graph.save_on_cpu)
"""How torch 2.11 saves on the CPU, also to pinned memory; 2.13 copies without blocking."""


@case("to-device", *(["cpu"] if IN_A_COPY_THAT_WAITS else []))
def kept_on_the_host() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        y = (x * x).sum()
    y.backward()
    assert torch.ones(3).type_as(x).is_cuda


@case()
def lazy_and_meta() -> None:
    net = nn.LazyLinear(3).to("cuda")
    net(torch.ones(2, 4, device="cuda"))
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    assert (net.weight.is_cuda, empty.to_empty(device="cuda").weight.is_cuda) == (True, True)


@pytest.mark.filterwarnings("ignore")
def test_all_of_it_works_and_waits_where_it_should() -> None:
    """The rules found in each, of waits in the program's steps."""
    with syncscan.pretend_gpu() as rec:
        for name, (ask, _) in CASES.items():
            with torch.profiler.record_function(f"case {name}"):
                ask()
    rules: defaultdict[str, set[str]] = defaultdict(set)
    for finding in rec.findings:
        rules[finding.scope[0].removeprefix("case ")].add(finding.rule)
    wrong = {name: (rules[name], expected) for name, (_, expected) in CASES.items() if rules[name] != expected}
    assert wrong == {}
    assert rec.analysis.trace.info.capture.coverage.gaps == ()


def test_what_runs_in_float_writes_where_it_was_asked_to() -> None:
    """The noise of rrelu, by which its gradient is: a slope between 1/8 and 1/3 where the input is negative."""
    with syncscan.pretend_gpu():
        x = torch.tensor([-1.0, 2.0], device="cuda", dtype=torch.half, requires_grad=True)
        y = nn.functional.rrelu(x, training=True)
        y.backward(torch.ones_like(y))
    slope, one = x.grad.tolist()
    assert one == 1
    assert 0.12 < slope < 0.34
    assert y.tolist() == [-slope, 2]


def test_integers_that_only_a_gpu_counts_stay_integers() -> None:
    """A histogram of int32, by which models with experts count their tokens, and which the CPU has for floats alone."""
    with syncscan.pretend_gpu() as rec:
        experts = torch.tensor([0, 2, 2, 3], dtype=torch.int32).to("cuda", non_blocking=True)
        tokens = torch.histc(experts, bins=4, min=0, max=3)
    assert (tokens.dtype, tokens.tolist()) == (torch.int32, [1, 0, 2, 1])
    assert rec.findings == ()
    assert rec.analysis.trace.info.capture.coverage.gaps == ()


@pytest.mark.parametrize(("dtype", "waits"), [(torch.float32, 1), (torch.float16, 1), (torch.bfloat16, 0)])
def test_groups_of_a_product_are_read_unless_they_are_bfloat16(dtype: Any, waits: int) -> None:
    """Their ends are copied to the host, and the products made one by one: 4 of 4 calls on an H200 in float32."""
    with syncscan.pretend_gpu() as rec:
        tokens, experts = (torch.ones(*shape, 16, device="cuda", dtype=dtype) for shape in ((8,), (2, 16)))
        torch._grouped_mm(tokens, experts, offs=torch.arange(4, 12, 4, device="cuda", dtype=torch.int32))
    assert [finding.op for finding in rec.findings] == ["aten::_grouped_mm"] * waits


def test_a_sparse_tensor_that_is_coalesced_is_compressed_without_a_wait() -> None:
    """It has its indices, which a dense one has to be searched for; another one is sorted first, which waits."""
    with syncscan.pretend_gpu() as rec:
        indices, values = torch.arange(3, device="cuda").expand(2, 3), torch.ones(3, device="cuda")
        pairs = torch.sparse_coo_tensor(indices, values, size=(3, 3), is_coalesced=True)
        pairs.to_sparse_csr()
        torch.sparse_coo_tensor(indices, values, size=(3, 3)).to_sparse_csr()
        torch.eye(3, device="cuda").to_sparse_csr()
    assert sorted((f.op, f.op_stack[-1]) for f in rec.findings) == [
        ("aten::to_sparse_csr", "aten::_coalesce"),
        ("aten::to_sparse_csr", "aten::nonzero"),
    ]


def test_a_sparse_matrix_of_columns_becomes_one_of_rows_with_a_wait() -> None:
    """The count of its values is copied to the device: one wait each way on an H200 (2.11)."""
    with syncscan.pretend_gpu() as rec:
        starts, columns, values = (torch.arange(n, device="cuda") for n in (4, 3, 3))
        rows = torch.sparse_csr_tensor(starts, columns, values.float(), size=(3, 3))
        rows.t().to_sparse_csr()
        rows.to_sparse_csr()
        rows.to_sparse_csc()
    assert sorted((f.op, f.count) for f in rec.findings) == [
        ("aten::to_sparse_csc", 1),
        ("aten::to_sparse_csr", 1),
    ]


@pytest.mark.parametrize("make", [torch.Tensor, torch.FloatTensor, lambda values: [float(value) for value in values]])
def test_each_number_of_a_list_is_read(make: Any) -> None:
    """Also by the oldest constructors, which no mode sees: one read per element on an H200."""
    with syncscan.pretend_gpu() as rec:
        make(list(torch.ones(3, device="cuda")))
    assert sum(finding.count for finding in rec.findings) == 3
