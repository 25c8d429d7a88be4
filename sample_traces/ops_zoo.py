"""Single ops that read back, copy, check or only look as if: for each a function that runs it on the GPU.

They cover the rows of the catalogue that can run alone; `rules_zoo.py` records them and measures which of them wait.
"""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.device("cuda")
Cases = dict[str, Callable[[], Any]]


def ops() -> Cases:
    """All cases by name."""
    warnings.simplefilter("ignore")
    parts = (read_backs, copies, shapes, backwards, checks, training, explicit, harmless, rarer)
    return {name: case for part in parts for name, case in part().items()}


def read_backs() -> Cases:
    """Numbers and truth values."""
    x = torch.randn(256, 256, device=CUDA)
    ints = torch.randint(0, 64, (1024,), device=CUDA)
    n, one, flag = torch.tensor(8, device=CUDA), torch.tensor(1.0, device=CUDA), torch.tensor(True, device=CUDA)
    mask, rows = x > 0, torch.arange(4, device=CUDA)
    log = logging.getLogger("ops_zoo")
    log.addHandler(logging.NullHandler())
    log.setLevel(logging.INFO)
    log.propagate = False
    return {
        "int": lambda: int(n),
        "complex": lambda: complex(one),
        "operator_index": lambda: [0, 1, 2, 3, 4, 5, 6, 7, 8][n],
        "if_tensor": lambda: 1 if x.sum() > 0 else 2,
        "while_tensor": lambda: [None for _ in iter(lambda: bool(x.sum() * 0 > 1), False)],
        "not_tensor": lambda: not flag,
        "assert_tensor": lambda: (x == x).all() or 1 / 0,
        "and_tensors": lambda: flag and one,
        "is_nonzero": lambda: torch.is_nonzero(one),
        "python_max": lambda: max(one, n),
        "python_sorted": lambda: sorted([one, one * 2, one * 0]),
        "python_any": lambda: any([flag, flag]),
        "in_list": lambda: one in [one * 2, one],
        "number_in_tensor": lambda: 3 in ints,
        "equal": lambda: torch.equal(x, x.clone()),
        "list_times": lambda: [0] * n,
        "math_sqrt": lambda: math.sqrt(one),
        "arange_tensor": lambda: torch.arange(n, device=CUDA),
        "full_tensor": lambda: torch.full((3,), one, device=CUDA),
        "linspace_tensor": lambda: torch.linspace(0, one, 5, device=CUDA),
        "zeros_tensor": lambda: torch.zeros(n, device=CUDA),
        "view_tensor": lambda: x.view(n, -1),
        "add_alpha": lambda: x.add(x, alpha=one),
        "slice_from": lambda: x[n:],
        "slice_to": lambda: x[:n],
        "index_0d_bool": lambda: x[flag],
        "select_0d": lambda: x[n],
        "f_string": lambda: f"{one:.3f}",
        "str_format": lambda: format(one, ".2f"),
        "str_int_tensor": lambda: str(ints[:4]),
        "repr_matrix": lambda: repr(x[:3, :3]),
        "logger_info": lambda: log.handle(log.makeRecord("a", 20, "f", 1, "loss %s", (str(x[0, :3]),), None)),
        "masked_fill_cuda_value": lambda: x.masked_fill(mask, one),
        "index_fill_cuda_value": lambda: x.index_fill(0, rows, one),
        "fill_other": lambda: torch.empty(4, device=CUDA).fill_(torch.tensor(1.0)),
        "tensor_of_scalars": lambda: torch.tensor([one, one * 2]),
        "tensor_of_scalars_cuda": lambda: torch.tensor([one, one * 2], device=CUDA),
        "split_by_tolist": lambda: torch.split(x, torch.full((2,), 128, device=CUDA).tolist()),
        "batch_norm_cumulative": later(_batch_norm(None), x),
        "topk_k_tensor": lambda: x.topk(int(n)),
        "iterate_item": lambda: [v.item() for v in x[0, :3]],
        "numpy_scalar": lambda: np.float32(one.item()),
        "loss_detach_item": lambda: x.mean().detach().item(),
        "any_item": lambda: (x > 100).any().item(),
        "isfinite_if": lambda: 1 if torch.isfinite(x).all() else 2,
        "isnan_if": lambda: 1 if torch.isnan(x.sum()) else 2,
    }


def later(function: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """A call with these arguments, later."""
    return lambda: function(*args)


def _batch_norm(momentum: float | None) -> nn.Module:
    return nn.BatchNorm1d(256, momentum=momentum).to(CUDA)


def copies() -> Cases:
    """Copies between host and device, and assignments that hide one."""
    x = torch.randn(512, 512, device=CUDA)
    host, large, pinned = torch.randn(256, 256), torch.randn(2048, 2048), torch.randn(512, 512).pin_memory()
    numbers, mask = np.arange(4), torch.arange(512) % 2 == 0
    cpu_rows, rows = torch.arange(4), torch.arange(4, device=CUDA)
    cuda_rows = torch.arange(512, device=CUDA)
    module = nn.Linear(64, 64)
    state = {k: v.clone() for k, v in module.state_dict().items()}
    resident = nn.Linear(64, 64, device=CUDA)
    return {
        "to_cpu_nonblocking": lambda: x.to("cpu", non_blocking=True),
        "type_float_tensor": lambda: x.type(torch.FloatTensor),
        "cpu_noncontiguous": lambda: x.t().cpu(),
        "to_cpu_double": lambda: x.to("cpu", torch.float64),
        "copy_into_cpu": lambda: host.copy_(x[:256, :256]),
        "copy_into_pinned_blocking": lambda: pinned.copy_(x),
        "cuda_method": lambda: host.cuda(),
        "to_cuda_half": lambda: host.to(CUDA, torch.float16),
        "h2d_large_nonblocking": lambda: large.to(CUDA, non_blocking=True),
        "copy_from_cpu": lambda: x[:256, :256].copy_(host),
        "copy_from_pinned_nonblocking": lambda: x.copy_(pinned, non_blocking=True),
        "module_to": lambda: nn.Linear(8, 8).to(CUDA),
        "load_state_dict": lambda: resident.load_state_dict(state),
        "torch_save": lambda: torch.save({"x": x[:4]}, io.BytesIO()),
        "state_dict_cpu": lambda: {k: v.cpu() for k, v in resident.state_dict().items()},
        "new_tensor": lambda: x.new_tensor([1.0, 2.0]),
        "as_tensor_list": lambda: torch.as_tensor([1, 2, 3], device=CUDA),
        "as_tensor_numpy": lambda: torch.as_tensor(numbers, device=CUDA),
        "from_numpy_to": lambda: torch.from_numpy(numbers).to(CUDA),
        "index_list": lambda: x[[0, 1]],
        "index_numpy": lambda: x[numbers],
        "index_cpu_tensor": lambda: x[cpu_rows],
        "index_cpu_mask": lambda: x[mask],
        "index_put_cpu_rows": lambda: x.__setitem__(cpu_rows, x[:4] * 2),
        "assign_element": lambda: x.__setitem__(0, 5.0),
        "assign_element_2": lambda: x.__setitem__((0, 1), 5.0),
        "assign_rows_number": lambda: x.__setitem__(rows, 1.0),
        "assign_rows_cuda_value": lambda: x.__setitem__(rows, torch.ones((), device=CUDA)),
        "assign_slice_number": lambda: x.__setitem__(slice(0, 1), 5.0),
        "fill_row": lambda: x[0].fill_(5.0),
        "where_number": lambda: torch.where(cuda_rows > 3, 1.0, 0.0),
        "tensor_pin_nonblocking": lambda: torch.tensor([1.0, 2.0]).pin_memory().to(CUDA, non_blocking=True),
        "pin_memory": lambda: host.pin_memory(),
        "scalar_tensor": lambda: torch.scalar_tensor(1.0, device=CUDA),
        "cpu_scalar_times_cuda": lambda: torch.tensor(2.0) * x,
        "deepcopy_module": lambda: __import__("copy").deepcopy(resident),
    }


def shapes() -> Cases:
    """Results as long as the data says."""
    x = torch.randn(128, 128, device=CUDA)
    ints = torch.randint(0, 64, (1024,), device=CUDA)
    mask = x > 0
    lengths = torch.full((4,), 8, device=CUDA)
    sparse = x.relu().to_sparse()
    batch = torch.randn(4, 16, 16, device=CUDA)
    log_probs = torch.randn(50, 4, 20, device=CUDA).log_softmax(2)
    boxes = torch.rand(50, 4, device=CUDA).cumsum(1)
    offsets = torch.arange(0, 129, 32, device=CUDA)
    jagged = torch.nested.nested_tensor_from_jagged(x, offsets)
    return {
        "nonzero_tuple": lambda: torch.nonzero(mask, as_tuple=True),
        "nonzero_static": lambda: torch.nonzero_static(mask, size=64),
        "mask_put_vector": lambda: x.clone().__setitem__(mask, x.abs()[mask]),
        "mask_put_0d_cuda": lambda: x.clone().__setitem__(mask, x[0, 0]),
        "masked_scatter": lambda: x.masked_scatter(mask, x),
        "unique_bool": lambda: torch.unique(mask),
        "unique_counts": lambda: torch.unique(ints, return_counts=True, return_inverse=True),
        "unique_dim": lambda: torch.unique(ints.view(64, 16), dim=0),
        "unique_consecutive_dim": lambda: torch.unique_consecutive(ints.view(64, 16), dim=0),
        "bincount_minlength": lambda: torch.bincount(ints, minlength=64),
        "histc_range": lambda: torch.histc(x, 10, min=-3, max=3),
        "repeat_interleave_output_size": lambda: torch.repeat_interleave(x[:4], lengths, dim=0, output_size=32),
        "repeat_interleave_method": lambda: x[:4].repeat_interleave(lengths, dim=0),
        "combinations": lambda: torch.combinations(x[0, :10]),
        "matrix_exp_batch": lambda: torch.matrix_exp(batch),
        "matrix_exp": lambda: torch.matrix_exp(batch[0]),
        "ctc_cpu_lengths": lambda: F.ctc_loss(log_probs, ints[:40].view(4, 10) % 19 + 1, [50] * 4, [10] * 4),
        "segment_reduce": lambda: torch.segment_reduce(x[:32, 0].contiguous(), "sum", lengths=lengths),
        "segment_reduce_unsafe": lambda: torch.segment_reduce(
            x[:32, 0].contiguous(), "sum", lengths=lengths, unsafe=True
        ),
        "to_sparse_csr": lambda: x.relu().to_sparse_csr(),
        "sparse_mm": lambda: torch.sparse.mm(sparse, x),
        "sparse_bmm": lambda: torch.bmm(batch.relu().to_sparse(), batch),
        "sparse_to_dense": lambda: sparse.to_dense(),
        "sparse_index_select": lambda: sparse.index_select(0, ints[:4]),
        "sparse_softmax": lambda: torch.sparse.softmax(sparse, 1),
        "sparse_add": lambda: sparse + sparse,
        "sparse_sum": lambda: torch.sparse.sum(sparse, 0),
        "mode_long_rows": lambda: torch.mode(torch.randint(0, 9, (2, 4096), device=CUDA)),
        "mode_short_rows": lambda: torch.mode(ints.view(64, 16)),
        "jagged_unbind": lambda: jagged.unbind(),
        "jagged_padded": lambda: jagged.to_padded_tensor(0.0),
        "nested_strided_padded": lambda: torch.nested.nested_tensor([x[:2], x[:4]]).to_padded_tensor(0.0),
        "pack_cuda_lengths": lambda: nn.utils.rnn.pack_padded_sequence(batch, lengths.cpu(), batch_first=True),
        "tensor_split_cpu": lambda: torch.tensor_split(x, torch.tensor([2, 4])),
        "tensor_split_cuda": lambda: torch.tensor_split(x, lengths[:2].cpu()),
        "max_plus_one": lambda: torch.zeros(int(ints.max()) + 1, device=CUDA).index_add_(
            0, ints, torch.ones(1024, device=CUDA)
        ),
        "nms": lambda: __import__("torchvision").ops.nms(boxes, boxes[:, 0], 0.5),
        "batched_nms": lambda: __import__("torchvision").ops.batched_nms(boxes, boxes[:, 0], ints[:50] % 3, 0.5),
        "flatnonzero_numpy": lambda: np.flatnonzero(mask.cpu().numpy()),
        "isin": lambda: torch.isin(ints, ints[:4]),
        "cdist": lambda: torch.cdist(x, x),
        "triu_indices": lambda: torch.triu_indices(16, 16, device=CUDA),
        "moe_loop": lambda: [x[torch.where(ints[:128] % 4 == e)[0]] for e in range(2)],
    }


def backwards() -> Cases:
    """Waits on the autograd thread."""
    x = torch.randn(64, 64, device=CUDA)
    mask = x > 0
    rows = torch.randint(0, 64, (32,), device=CUDA)

    def back(f: Callable[[Any], Any]) -> Callable[[], Any]:
        def run() -> None:
            leaf = x.abs().add(0.5).requires_grad_()
            f(leaf).sum().backward()

        return run

    def anomaly() -> None:
        with torch.autograd.detect_anomaly(check_nan=True):
            back(lambda t: t.square())()

    return {
        "index_mask_backward": back(lambda t: t[mask]),
        "index_rows_backward": back(lambda t: t[rows]),
        "masked_select_backward": back(lambda t: t.masked_select(mask)),
        "where_backward": back(lambda t: torch.where(mask, t, 0)),
        "prod_backward": back(lambda t: t.prod()),
        "prod_dim_backward": back(lambda t: t.prod(1)),
        "cumprod_backward": back(lambda t: t.cumprod(1)),
        "max_backward": back(lambda t: t.max()),
        "median_backward": back(lambda t: t.median()),
        "sparse_embedding": back(lambda t: F.embedding(rows, t, sparse=True)),
        "embedding_backward": back(lambda t: F.embedding(rows, t)),
        "repeat_interleave_backward": back(lambda t: t.repeat_interleave(2, dim=0)),
        "anomaly": anomaly,
        "hook_item": back(_hooked),
    }


def _hooked(t: Any) -> Any:
    y = t * 2
    y.register_hook(lambda grad: grad.norm().item() and None)
    return y


def checks() -> Cases:
    """Error checks and validations."""
    x = torch.randn(64, 64, device=CUDA)
    spd = x @ x.T + 64 * torch.eye(64, device=CUDA)
    batch = spd.expand(4, 64, 64).contiguous()
    labels = torch.randint(0, 8, (256,), device=CUDA)
    signal, window = torch.randn(2048, device=CUDA), torch.hann_window(256, device=CUDA)
    spectrum = torch.stft(signal, 256, window=window, return_complex=True)
    ones = torch.ones_like(x)
    p = torch.rand(64, device=CUDA)
    leaf = x.clone().requires_grad_()
    leaf.grad = ones.clone()
    scale, zero = torch.full((64,), 0.05, device=CUDA), torch.zeros(64, dtype=torch.int32, device=CUDA)
    D = torch.distributions
    indices = torch.stack([labels, labels])
    values = torch.ones(256, device=CUDA)
    observer = __import__("torch.ao.quantization", fromlist=["x"]).MinMaxObserver().to(CUDA)
    observer(x)
    return {
        "linalg_inv_ex": lambda: torch.linalg.inv_ex(spd),
        "inverse": lambda: torch.inverse(spd),
        "cholesky_ex": lambda: torch.linalg.cholesky_ex(spd),
        "cholesky_inverse": lambda: torch.cholesky_inverse(spd),
        "lu_factor": lambda: torch.linalg.lu_factor(spd),
        "lu": lambda: torch.linalg.lu(spd),
        "qr": lambda: torch.linalg.qr(spd),
        "slogdet": lambda: torch.linalg.slogdet(spd),
        "svd": lambda: torch.linalg.svd(spd),
        "svd_gesvda": lambda: torch.linalg.svd(batch, driver="gesvda"),
        "eigh": lambda: torch.linalg.eigh(spd),
        "eigvalsh": lambda: torch.linalg.eigvalsh(spd),
        "eig": lambda: torch.linalg.eig(spd),
        "eigvals": lambda: torch.linalg.eigvals(spd),
        "pinv": lambda: torch.linalg.pinv(spd),
        "matrix_rank": lambda: torch.linalg.matrix_rank(spd),
        "cond": lambda: torch.linalg.cond(spd),
        "lstsq": lambda: torch.linalg.lstsq(spd, x),
        "ldl_factor": lambda: torch.linalg.ldl_factor(spd),
        "solve_triangular": lambda: torch.linalg.solve_triangular(spd, x, upper=True),
        "solve_ex": lambda: torch.linalg.solve_ex(spd, x),
        "cholesky_batch": lambda: torch.linalg.cholesky(batch),
        "matrix_power": lambda: torch.linalg.matrix_power(spd, 3),
        "norm_nuclear": lambda: torch.linalg.norm(spd, "nuc"),
        "corrcoef": lambda: torch.corrcoef(x[:8]),
        "istft": lambda: torch.istft(spectrum, 256, window=window),
        "stft": lambda: torch.stft(signal, 256, window=window, return_complex=True),
        "normal_std_tensor": lambda: torch.normal(x, ones),
        "normal_std_number": lambda: torch.normal(x, 1.0),
        "multinomial_no_replacement": lambda: torch.multinomial(p, 8, replacement=False),
        "allclose": lambda: torch.allclose(x, x.clone()),
        "isclose_all": lambda: torch.isclose(x, x).all(),
        "assert_close_far": lambda: torch.testing.assert_close(x, x.clone()),
        "normal_distribution": lambda: D.Normal(x, ones),
        "normal_distribution_unchecked": lambda: D.Normal(x, ones, validate_args=False),
        "categorical": lambda: D.Categorical(logits=x),
        "log_prob": lambda: D.Normal(x, ones, validate_args=False).log_prob(x),
        "bernoulli_distribution": lambda: D.Bernoulli(p),
        "clip_grad_norm": lambda: nn.utils.clip_grad_norm_([leaf], 1.0),
        "clip_grad_norm_error": lambda: nn.utils.clip_grad_norm_([leaf], 1.0, error_if_nonfinite=True),
        "clip_grad_value": lambda: nn.utils.clip_grad_value_([leaf], 1.0),
        "fake_quantize_channel": lambda: torch.fake_quantize_per_channel_affine(x, scale, zero, 0, -128, 127),
        "fake_quantize_tensor": lambda: torch.fake_quantize_per_tensor_affine(x, 0.05, 0, -128, 127),
        "observer_forward": lambda: observer(x),
        "observer_qparams": lambda: observer.calculate_qparams(),
        "sparse_invariants": lambda: torch.sparse_coo_tensor(indices, values, (8, 8), check_invariants=True),
        "sparse_no_size": lambda: torch.sparse_coo_tensor(indices, values),
        "sparse_sized": lambda: torch.sparse_coo_tensor(indices, values, (8, 8), check_invariants=False),
        "embedding_max_norm": lambda: F.embedding(labels, x.clone(), max_norm=1.0),
        "cross_entropy": lambda: F.cross_entropy(x, labels[:64] % 64),
        "nll_ignore_index": lambda: F.cross_entropy(x, labels[:64] % 64, ignore_index=3),
        "torchmetrics_accuracy": lambda: _accuracy()(labels, labels, num_classes=8),
        "torchmetrics_unchecked": lambda: _accuracy()(labels, labels, num_classes=8, validate_args=False),
        "assert_async": lambda: torch._assert_async((x == x).all()),
        "gradcheck_like_isfinite": lambda: torch.isfinite(x).all(),
    }


def _accuracy() -> Any:
    from torchmetrics.functional.classification import multiclass_accuracy

    return multiclass_accuracy


def training() -> Cases:
    """Optimizers, scalers, recurrent nets."""
    x = torch.randn(64, 64, device=CUDA)

    def stepper(make: Callable[[list[Any]], Any]) -> Callable[[], Any]:
        leaf = nn.Parameter(x.clone())
        leaf.grad = torch.ones_like(x)
        return make([leaf]).step  # type: ignore[no-any-return]

    optim = torch.optim
    lr = torch.tensor(0.001, device=CUDA)
    leaf = nn.Parameter(x.clone())
    sgd, fused = optim.SGD([leaf], lr=0.001), optim.Adam([leaf], lr=0.001, fused=True)
    scaler = torch.amp.GradScaler("cuda")

    def scaled(optimizer: Any) -> None:
        scaler.scale(leaf.square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    rnn = nn.LSTM(64, 64).to(CUDA)
    return {
        "adam_step": stepper(lambda p: optim.Adam(p)),
        "adam_capturable": stepper(lambda p: optim.Adam(p, capturable=True)),
        "adafactor_step": stepper(lambda p: optim.Adafactor(p)),
        "asgd_step": stepper(lambda p: optim.ASGD(p)),
        "asgd_single": stepper(lambda p: optim.ASGD(p, foreach=False)),
        "sgd_cuda_lr": stepper(lambda p: optim.SGD(p, lr=lr, foreach=False)),
        "rprop_step": stepper(lambda p: optim.Rprop(p)),
        "nadam_step": stepper(lambda p: optim.NAdam(p)),
        "scaler_sgd": lambda: scaled(sgd),
        "scaler_fused": lambda: scaled(fused),
        "scaler_get_scale": lambda: scaler.get_scale(),
        "lstm_forward": lambda: rnn(x.unsqueeze(1)),
        "rng_state": lambda: torch.cuda.get_rng_state(),
        "manual_seed": lambda: torch.cuda.manual_seed(0),
        "swa_update": lambda: optim.swa_utils.get_ema_multi_avg_fn(0.9)([leaf.data], [x], 1),
    }


def explicit() -> Cases:
    """Synchronises, events, memory."""
    stream = torch.cuda.Stream()
    x = torch.randn(64, 64, device=CUDA)

    def timed() -> None:
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        x.sum()
        b.record()
        b.synchronize()
        a.elapsed_time(b)

    def other_stream() -> None:
        with torch.cuda.stream(stream):
            x.sum()
        stream.synchronize()

    def deferred() -> None:
        buffer = torch.empty(64, 64, pin_memory=True)
        buffer.copy_(x, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        done.synchronize()

    return {
        "timed": timed,
        "accelerator_synchronize": lambda: torch.accelerator.synchronize(),
        "default_stream_synchronize": lambda: torch.cuda.default_stream().synchronize(),
        "other_idle_stream": other_stream,
        "wait_stream": lambda: stream.wait_stream(torch.cuda.current_stream()),
        "wait_event": lambda: stream.wait_event(torch.cuda.current_stream().record_event()),
        "stream_query": lambda: torch.cuda.current_stream().query(),
        "deferred_readback": deferred,
        "memory_stats": lambda: torch.cuda.memory_stats(),
        "mem_get_info": lambda: torch.cuda.mem_get_info(),
        "memory_allocated": lambda: torch.cuda.memory_allocated(),
        "empty_cache_used": lambda: (torch.empty(1 << 26, device=CUDA), torch.cuda.empty_cache()),
        "gc_collect": lambda: __import__("gc").collect(0),
        "reset_peak": lambda: torch.cuda.reset_peak_memory_stats(),
    }


def harmless() -> Cases:
    """Ops that are often blamed."""
    x = torch.randn(256, 256, device=CUDA)
    ints = torch.randint(0, 64, (1024,), device=CUDA)
    mask = x > 0
    cpu = torch.tensor(3.0)
    return {
        "cpu_item": lambda: cpu.item(),
        "cpu_bool": lambda: bool(cpu > 2),
        "print_cpu": lambda: str(cpu),
        "shape_math": lambda: x.numel() // len(x),
        "mask_times": lambda: (x * mask).sum() / mask.sum(),
        "searchsorted": lambda: torch.searchsorted(x[0].sort().values, x[1]),
        "bucketize": lambda: torch.bucketize(x, x[0, :8].sort().values),
        "randint": lambda: torch.randint(0, 9, (8,), device=CUDA),
        "randperm_large": lambda: torch.randperm(100_000, device=CUDA),
        "kthvalue": lambda: x.kthvalue(3),
        "argmax": lambda: x.argmax(),
        "cumsum": lambda: x.cumsum(0),
        "scatter": lambda: torch.zeros(64, device=CUDA).scatter_(0, ints, 1.0),
        "gather": lambda: x.gather(0, ints.view(4, 256) % 256),
        "index_put_cuda": lambda: x.clone().index_put_((ints[:4] % 256,), x[0]),
        "interpolate": lambda: F.interpolate(x[None, None], scale_factor=2),
        "sdpa": lambda: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], is_causal=True),
        "lerp": lambda: x.lerp(x, 0.5),
        "std": lambda: x.std(),
        "dtype_cast": lambda: x.to(torch.float16),
        "einsum": lambda: torch.einsum("ij,jk->ik", x, x),
        "flip": lambda: x.flip(0),
        "data_ptr": lambda: x.data_ptr(),
    }


def rarer() -> Cases:
    """What programs do less often, of every kind."""
    x = torch.randn(128, 128, device=CUDA)
    spd = x @ x.T + 128 * torch.eye(128, device=CUDA)
    ints = torch.randint(0, 64, (1024,), device=CUDA)
    lengths = torch.tensor([4, 3, 2, 1], device=CUDA)
    leaf = nn.Parameter(x.clone())
    leaf.grad = torch.ones_like(x)
    lbfgs = torch.optim.LBFGS([leaf], max_iter=2)
    adam = torch.optim.Adam([leaf])
    adam.step()
    state = adam.state_dict()
    graph, still = torch.cuda.CUDAGraph(), torch.randn(64, 64, device=CUDA)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        still.mul(2)
    attention = nn.MultiheadAttention(128, 4, batch_first=True).to(CUDA)
    packed = nn.utils.rnn.pack_padded_sequence(x.view(4, 4, 1024), lengths.cpu(), batch_first=True)
    log_probs = torch.randn(50, 4, 20, device=CUDA).log_softmax(2)
    table = nn.EmbeddingBag(64, 16, sparse=True).to(CUDA)
    sparse_adam = torch.optim.SparseAdam(table.parameters())
    loss_ema = torch.zeros((), device=CUDA)
    one = torch.tensor(1.0, device=CUDA)
    dropped = nn.Dropout(0.1)

    def sparse_step() -> None:
        table(ints.view(64, 16)).sum().backward()
        sparse_adam.step()
        sparse_adam.zero_grad()

    def hooked_closure() -> Any:
        loss = leaf.square().sum()
        leaf.grad = leaf.detach() * 2
        return loss

    def checkpointed() -> None:
        y = torch.utils.checkpoint.checkpoint(lambda t: dropped(t) * 2, leaf, use_reentrant=False)
        y.sum().backward()

    def captured() -> None:
        fresh = torch.cuda.CUDAGraph()
        with torch.cuda.graph(fresh):
            still.mul(2)

    cpu_lengths = torch.full((4,), 50, dtype=torch.int), torch.full((4,), 10, dtype=torch.int)
    flat = torch.randint(1, 20, (40,), dtype=torch.int)
    return {
        "pad_tensor_value": lambda: F.pad(x, (1, 1), value=one),
        "numpy_force": lambda: x[0].numpy(force=True),
        "pickle": lambda: __import__("pickle").dumps(x[0]),
        "storage_tolist": lambda: ints[:4].clone().untyped_storage().cpu(),
        "ctc_2d_device": lambda: F.ctc_loss(log_probs, flat.view(4, 10).to(CUDA, non_blocking=True), *cpu_lengths),
        "bincount_uint8": lambda: torch.bincount(ints.to(torch.uint8)),
        "bincount_weights": lambda: torch.bincount(ints, weights=ints.float()),
        "histogramdd": lambda: torch.histc(x.flatten(), bins=8),
        "svd_gesvd": lambda: torch.linalg.svd(spd, driver="gesvd"),
        "svd_gesvdj": lambda: torch.linalg.svd(spd, driver="gesvdj"),
        "logdet": lambda: torch.logdet(spd),
        "lu_solve": lambda: torch.linalg.lu_solve(*torch.linalg.lu_factor_ex(spd)[:2], x),
        "ldl_solve": lambda: torch.linalg.ldl_solve(*torch.linalg.ldl_factor_ex(spd)[:2], x),
        "inv_batch": lambda: torch.linalg.inv(spd.expand(4, 128, 128)),
        "solve_backward": lambda: torch.linalg.solve(spd, leaf).sum().backward(),
        "cholesky_solve": lambda: torch.cholesky_solve(x, torch.linalg.cholesky_ex(spd)[0]),
        "lobpcg": lambda: torch.lobpcg(spd, k=2, niter=1),
        "graph_capture": captured,
        "argwhere_row": lambda: torch.argwhere(x[0] > 0),
        "assign_0d": lambda: ints.__setitem__(0, 5),
        "mask_assign_number": lambda: x.__setitem__(x > 3, 3.0),
        "all_item": lambda: (x < 100).all().item(),
        "equal_bool": lambda: bool((x == x).all()),
        "device_to_device": lambda: x.to(CUDA, torch.float64),
        "cpu_contiguous_half": lambda: x.half().cpu(),
        "isnan_sum_item": lambda: x.isnan().sum().item(),
        "norm_item": lambda: x.norm().item(),
        "max_tuple_item": lambda: x.max(0)[0].max().item(),
        "embedding_bag_max_norm": lambda: F.embedding_bag(ints.view(64, 16), x.clone(), max_norm=1.0),
        "sparse_adam": sparse_step,
        "lbfgs": lambda: lbfgs.step(hooked_closure),
        "optimizer_state_dict": lambda: adam.state_dict(),
        "optimizer_load": lambda: adam.load_state_dict(state),
        "graph_replay": graph.replay,
        "attention": lambda: attention(x[None], x[None], x[None]),
        "pad_packed": lambda: nn.utils.rnn.pad_packed_sequence(packed, batch_first=True),
        "pack_sequence": lambda: nn.utils.rnn.pack_sequence([x[:3], x[:2]]),
        "pad_sequence": lambda: nn.utils.rnn.pad_sequence([x[:3], x[:2]]),
        "checkpoint": checkpointed,
        "fork_rng": lambda: torch.random.fork_rng(devices=[0]).__enter__(),
        "set_rng_state": lambda: torch.cuda.set_rng_state(torch.cuda.get_rng_state()),
        "running_mean": lambda: loss_ema.mul_(0.9).add_(x.mean(), alpha=0.1),
        "stack_tolist": lambda: torch.stack([x.mean(), x.std()]).tolist(),
        "gumbel": lambda: F.gumbel_softmax(x),
        "poisson": lambda: torch.poisson(x.abs()),
        "cartesian_prod": lambda: torch.cartesian_prod(x[0], x[1]),
        "block_diag": lambda: torch.block_diag(x[:2], x[:3]),
        "tril_indices": lambda: torch.tril_indices(9, 9, device=CUDA),
        "vander": lambda: torch.vander(x[0], N=4),
        "diff": lambda: x.diff(),
        "cummax": lambda: x.cummax(0),
        "nanmedian": lambda: x.nanmedian(),
        "nansum": lambda: x.nansum(),
        "trapezoid": lambda: torch.trapezoid(x),
        "take_along": lambda: torch.take_along_dim(x, x.argsort(1), 1),
        "index_reduce": lambda: x.index_reduce(0, ints[:8] % 128, x[:8], "amax"),
        "put": lambda: x.put(ints[:8], x[0, :8]),
        "unfold": lambda: F.unfold(x[None, None], 3),
        "fft": lambda: torch.fft.rfft(x),
        "equal_shapes_differ": lambda: torch.equal(x, x[:4]),
        "memory_summary": lambda: torch.cuda.memory_summary(),
        "new_stream": lambda: torch.cuda.Stream(),
        "event_elapsed": lambda: torch.cuda.Event(enable_timing=True).record(),
        "warn_tensor": lambda: warnings.warn(f"loss {one}", stacklevel=1),
        "round_tensor": lambda: round(one.item(), 2),
        "int_of_max": lambda: x[: int(lengths.max())],
        "range_loop": lambda: list(range(lengths[0])),
        "enumerate_rows": lambda: [r for _, r in enumerate(x[:3])],
        "zip_tolist": lambda: list(zip(ints[:3].tolist(), ints[3:6].tolist(), strict=True)),
        "dict_of_items": lambda: {"a": x.mean().item(), "b": x.std().item()},
        "any_over_mask": lambda: x[x.abs().sum(1) > 0].mean() if (x > 0).any() else x,
        "topk_mask": lambda: x.masked_fill(x < x.topk(5).values[:, -1:], float("-inf")),
        "one_hot_argmax": lambda: F.one_hot(x.argmax(1)),
        "count_by_mask": lambda: int((x > 0).sum()),
        "len_of_nonzero": lambda: len(torch.nonzero(x > 0)),
        "mask_numel": lambda: x[x > 0].numel(),
        "where_first": lambda: torch.where(ints == 3)[0],
        "unique_len": lambda: len(ints.unique()),
        "set_of_tolist": lambda: set(ints.tolist()),
        "nan_to_num_check": lambda: torch.nan_to_num(x).isnan().any(),
        "loss_print": lambda: str(x.mean()),
        "loss_format_list": lambda: f"{[round(v, 2) for v in x[0, :3].tolist()]}",
        "numpy_histogram": lambda: np.histogram(x.cpu().numpy()),
        "from_blob_like": lambda: torch.tensor(np.ones(4), device=CUDA),
        "index_add_tensor_alpha": lambda: x.index_add(0, ints[:4] % 128, x[:4], alpha=one),
        "pow_tensor": lambda: x.abs() ** one,
        "clamp_tensor": lambda: x.clamp(max=one),
        "roll": lambda: x.roll(1, 0),
        "narrow_tensor": lambda: x.narrow(0, one.long() * 0, 4),
        "expand_tensor_size": lambda: x[:1].expand(int(lengths[0]), -1),
    }
