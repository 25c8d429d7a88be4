"""A compile fuses neighboring launches into one kernel, and keeps libraries' kernels."""

from __future__ import annotations

import pytest

from syncscan.facts.network import ops_of
from syncscan.model.trace import Trace
from syncscan.whatif.fusion import LEAST_NS, Fusion, fusion
from tests.builder import TraceBuilder
from tests.networks import intervals, op


def fused(*kernels: tuple[str, str, float]) -> tuple[Trace, Fusion]:
    """Return the kernels left of a step of ops, each given with its kernel and time, µs."""
    t = TraceBuilder()
    with t.step(0, 20 + 10 * len(kernels)):
        for number, (name, kernel, lasts) in enumerate(kernels):
            op(t, name, 10 + 10 * number, lasts, kernel)
    trace = t.trace()
    (step,) = intervals(trace)
    return trace, fusion(trace, ops_of(trace, step))


def left(trace: Trace, result: Fusion, stay: float = 1.0) -> dict[str, float]:
    """The part that is left of each kernel's length, by its name."""
    return {trace.name(row): part for row, part in result.work(stay)}


def test_neighbors_that_go_through_memory_become_one_kernel() -> None:
    """Three elementwise ops: the longest one's launch stays, with what is left of all; the others' go."""
    trace, result = fused(("aten::add", "add", 20), ("aten::mul", "mul", 40), ("aten::gelu", "gelu", 20))
    assert result.generated == 1
    assert left(trace, result, stay=0.25) == {"add": 0.0, "gelu": 0.0, "mul": pytest.approx(0.25 * 80 / 40)}


def test_a_generated_kernel_takes_no_less_than_the_shortest_measured() -> None:
    """Two short ones leave 1.4 µs, however little memory is still read; a kernel alone stays unchanged."""
    trace, result = fused(("aten::add", "add", 2), ("aten::mul", "mul", 1))
    assert left(trace, result, stay=0.01)["add"] == pytest.approx(LEAST_NS / 2000)
    trace, result = fused(("aten::add", "add", 1))
    assert left(trace, result, stay=0.01) == {"add": 1.0}


def test_a_library_s_kernel_parts_what_is_fused() -> None:
    """A matrix product is called as it is, and what comes before and behind it are kernels of their own."""
    trace, result = fused(("aten::add", "add", 5), ("aten::addmm", "gemm", 50), ("aten::gelu", "gelu", 5))
    assert (result.generated, result.library_ns) == (2, 8_000)
    assert "gemm" not in left(trace, result)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("softmax_warp_forward", 1),
        ("reduce_kernel<512>", 2),
        ("cuComputeGammaBetaGrad", 3),
        ("vectorized_layer_norm_kernel", 1),
        ("RowwiseMomentsCUDAKernel", 2),
    ],
)
def test_a_reduction_takes_kernels_of_its_own(kernel: str, expected: int) -> None:
    """Along rows one, over much two, of a norm's weights three; what is elementwise beside it is fused into it."""
    _, result = fused(("aten::add", "add", 5), ("aten::reduce", kernel, 5), ("aten::mul", "mul", 5))
    assert result.generated == expected + (expected != 1)


def test_a_change_of_layout_goes() -> None:
    """Conversions are cuDNN's own: a compiled network keeps to a layout that needs none."""
    trace, result = fused(("aten::convolution", "nchwToNhwcKernel", 9), ("aten::convolution", "cudnn_conv", 50))
    assert left(trace, result) == {"nchwToNhwcKernel": 0.0}


def test_the_cast_of_a_weight_stays_a_kernel() -> None:
    """Autocast casts input and weight of a product: the input's cast is fused with what made it, the weight's isn't."""
    t = TraceBuilder()
    with t.step(0, 100), t.op("aten::linear", 10, 60):
        for at in (12, 22):
            with t.op("aten::copy_", at, at + 8):
                t.launch("cast", at=at + 2, lasts=3)
        with t.op("aten::addmm", 40, 50):
            t.launch("gemm", at=42, lasts=9)
    trace = t.trace()
    (step,) = intervals(trace)
    assert fusion(trace, ops_of(trace, step)).generated == 2


def test_a_copy_to_the_host_is_not_fused() -> None:
    """It leaves the device; a copy within it is an elementwise kernel like any other."""
    t = TraceBuilder()
    with t.step(0, 100):
        for at, name in ((10, "Memcpy DtoH (Device -> Pinned)"), (30, "Memcpy DtoD (Device -> Device)")):
            with t.op("aten::copy_", at, at + 8):
                t.copy(name, at=at + 2)
    trace = t.trace()
    (step,) = intervals(trace)
    assert fusion(trace, ops_of(trace, step)).generated == 1


def test_a_write_at_indices_is_a_kernel_of_its_own_and_two_into_a_view() -> None:
    """Inductor copies the tensor and writes it back; of what a view is a part of, too."""
    put = ("aten::index_put_", "index_elementwise_kernel", 5)
    _, plain = fused(("aten::mul", "mul", 5), put)
    _, view = fused(("aten::mul", "mul", 5), ("aten::select", "mul", 0), put)
    assert (plain.generated, view.generated) == (2, 3)
