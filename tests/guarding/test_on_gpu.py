"""A guard on a real device: each kind of sync, threads, backward, compiled functions, what it costs, nothing left."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import syncscan
from benchmarks import guard_cost
from syncscan.guarding import blocking_copies

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

ONCE: dict[str, tuple[str, Callable[[Any], object]]] = {
    "item": ("stream", lambda x: x[0, 0].item()),
    "float": ("stream", lambda x: float(x[0, 0])),
    "bool": ("stream", lambda x: bool(x[0, 0] > 0)),
    "tolist": ("stream", lambda x: x[0].tolist()),
    "cpu": ("stream", lambda x: x.cpu()),
    "nonzero": ("stream", lambda x: torch.nonzero(x > 0)),
    "mask": ("stream", lambda x: x[x > 0]),
    "constructor": ("stream", lambda x: torch.tensor([1.0, 2.0], device="cuda")),
    "to the device": ("stream", lambda x: torch.ones(8).to("cuda")),
    "stream": ("stream", lambda x: torch.cuda.current_stream().synchronize()),
    "device": ("device", lambda x: torch.cuda.synchronize()),
    "event": ("event", lambda x: torch.cuda.current_stream().record_event().synchronize()),
    "empty_cache": ("call", lambda x: torch.cuda.empty_cache()),
    "unique by rows": ("call", lambda x: torch.unique(x[:4], dim=0)),
    "pageable read-back": ("copy", lambda x: torch.empty_like(x, device="cpu").copy_(x, non_blocking=True)),
    "pinned, not dense": (
        "copy",
        lambda x: torch.empty(512, 1024, pin_memory=True)[:, ::2].copy_(x, non_blocking=True),
    ),
}
NEVER: dict[str, Callable[[Any], object]] = {
    "kernels": lambda x: (x @ x).relu_().sum(),
    "pinned to the device": lambda x: torch.empty(512, 512, pin_memory=True).to("cuda", non_blocking=True),
    "to the host": lambda x: x.to("cpu", non_blocking=True),
    "pinned read-back": lambda x: torch.empty(512, 512, pin_memory=True).copy_(x, non_blocking=True),
    "a host's own": lambda x: torch.ones(4).to(torch.float64, non_blocking=True).sum().item(),
    "event record": lambda x: torch.cuda.current_stream().record_event().query(),
}


@pytest.fixture
def x() -> Any:
    tensor = torch.randn(512, 512, device="cuda")
    (tensor @ tensor).sum().item()
    return tensor


@pytest.mark.parametrize("name", ONCE)
def test_a_sync_is_seen_once_with_its_line(name: str, x: Any) -> None:
    """Every kind, on this line of the test."""
    kind, action = ONCE[name]
    action(x)
    with syncscan.guard(on_violation=lambda sync: None) as guard:
        action(x)
    own = action.__code__
    assert [(v.kind, v.file, v.line >= own.co_firstlineno) for v in guard.violations][:1] == [(kind, __file__, True)]
    assert guard.count >= 1
    assert guard.count == 1 or name in ("mask", "unique by rows")


@pytest.mark.parametrize("name", NEVER)
def test_what_does_not_wait_is_not_seen(name: str, x: Any) -> None:
    """Pinned copies, kernels, the host's own tensors."""
    NEVER[name](x)
    with syncscan.guard(on_violation="raise") as guard:
        NEVER[name](x)
    assert guard.count == 0


def busy() -> None:
    """A tenth of a second of work on the device."""
    torch.cuda._sleep(200_000_000)


@pytest.mark.parametrize("size", [blocking_copies.STAGED_BYTES, 256 * blocking_copies.STAGED_BYTES])
def test_a_pageable_copy_to_the_device_waits_when_it_is_large(size: int) -> None:
    """Up to `STAGED_BYTES` the driver takes it at once; the guard says what the clock says."""
    host = torch.ones(size // 4)
    host.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    with syncscan.guard(on_violation=lambda sync: None) as guard:
        busy()
        begin = time.perf_counter()
        host.to("cuda", non_blocking=True)
        waited = time.perf_counter() - begin
    torch.cuda.synchronize()
    assert bool(guard.count) is (waited > 0.02) is (size > blocking_copies.STAGED_BYTES)


def test_raising_comes_up_through_torch(x: Any) -> None:
    """It comes out of `.item()` itself, which is written in C++; torch continues to work."""
    with syncscan.guard(on_violation="raise"), pytest.raises(syncscan.UnexpectedSync) as caught:
        x.sum().item()
    assert (caught.value.sync.file, caught.value.sync.called) == (__file__, "item")
    assert x.sum().item() == x.sum().item()


def test_another_thread_reads_as_it_likes(x: Any) -> None:
    """While this one is guarded, and while it raises."""
    values: list[float] = []
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with syncscan.guard(on_violation="raise") as guard:
            worker = threading.Thread(target=lambda: values.extend(x[0].tolist()))
            worker.start()
            worker.join()
    assert (len(values), guard.count, shown) == (512, 0, [])


def test_backward_counts(x: Any) -> None:
    """A mask's backward waits on the engine's thread, and so does a hook of the program's."""
    leaf = x.clone().requires_grad_()
    y = leaf * 2
    y.register_hook(lambda gradient: gradient * gradient.sum().item())
    loss = y[y > 0].sum()
    with syncscan.guard(on_violation=lambda sync: None) as guard:
        loss.backward()
    functions = {v.function for v in guard.violations}
    assert functions == {"<lambda>", "test_backward_counts"}


def test_compiled_code_is_guarded(x: Any) -> None:
    """Compiling is allowed, a read-back that breaks the graph is not, and none is where there is none."""

    def clean(x: Any) -> Any:
        return (x.sin() @ x.cos()).relu()

    def reads(x: Any) -> Any:
        y = x.sin()
        return y * y.sum().item()

    with syncscan.guard(on_violation=lambda sync: None) as guard:
        compiled = torch.compile(clean)
        for _ in range(3):
            compiled(x)
        assert guard.count == 0
        breaking = torch.compile(reads)
        for _ in range(3):
            breaking(x)
    assert guard.count == 3
    assert {(v.file, v.function) for v in guard.violations} == {(__file__, "reads")}


def test_nothing_is_left(x: Any) -> None:
    """Mode, filters, names."""
    before = (torch.cuda.get_sync_debug_mode(), list(warnings.filters), torch._C._cuda_synchronize)
    for _ in range(3):
        with syncscan.guard(on_violation=lambda sync: None):
            x.sum().item()
    assert (torch.cuda.get_sync_debug_mode(), list(warnings.filters), torch._C._cuda_synchronize) == before
    assert not {"to", "cuda", "copy_", "coalesce"} & set(vars(torch.Tensor)) - {"coalesce"}
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        x.sum().item()
    assert shown == []


@pytest.mark.bench
def test_a_step_without_syncs_costs_what_it_did() -> None:
    """Within the machine's own spread: below 3 % of a step of 1,200 small ops; a microsecond at most a `.to()`."""
    ratio, per_call_us = guard_cost.step_ratio(), guard_cost.call_us()
    assert ratio < 1.03
    assert max(per_call_us.values()) < 1.0
