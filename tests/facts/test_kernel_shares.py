"""Top kernels by device time, each with who launched most of it."""

from __future__ import annotations

import pytest

from syncscan.facts.kernel_shares import COMPILED, KernelShare, kernel_shares
from tests.builder import TraceBuilder


def shares(t: TraceBuilder, most: int = 5) -> tuple[KernelShare, ...]:
    return kernel_shares(t.trace(), most)


def test_kernels_are_recognized_by_name_the_longest_first() -> None:
    """Means of a step, and parts of all that the device works on."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.launch(at=start + 1, lasts=300, kernel="gemm")
        t.launch(at=start + 20, lasts=100, kernel="add")
    assert [(k.name, k.us, k.share, k.per_step) for k in shares(t)] == [
        ("gemm", 300.0, 0.75, 1.0),
        ("add", 100.0, 0.25, 1.0),
    ]


def test_the_module_is_the_frames_one_and_the_op_the_outermost() -> None:
    """A kernel that several launched has the one that launched most of it, and how many others."""
    t = TraceBuilder()
    for start in t.steps(1, lasts=1000):
        with (
            t.frame("nn.Module: Net_0", start, start + 100),
            t.frame("nn.Module: Linear_1", start, start + 50),
            t.op("aten::linear", start, start + 40),
            t.op("aten::addmm", start, start + 30),
        ):
            t.launch(at=start + 1, lasts=300, kernel="gemm")
            t.call("cudaStreamSynchronize", start + 20, start + 25)
        with t.op("aten::mm", start + 110, start + 140):
            t.launch(at=start + 120, lasts=100, kernel="gemm")
    (kernel,) = shares(t)
    assert (kernel.module, kernel.op, kernel.others) == (("Net_0", "Linear_1"), "aten::linear", 1)


def test_without_frames_the_scopes_stand_in() -> None:
    """The profiler's steps and compiled graphs are no scopes of the program's."""
    t = TraceBuilder()
    for start in t.steps(1, lasts=1000):
        with t.scope("encoder", start, start + 50), t.op("## Call CompiledFxGraph f0 ##", start, start + 40):
            t.launch(at=start + 1, lasts=300, kernel="triton_poi_0")
    (kernel,) = shares(t)
    assert (kernel.module, kernel.op) == (("encoder",), COMPILED)


def test_backward_lies_in_its_forward_op_s_module() -> None:
    """By the sequence number that both have."""
    t = TraceBuilder()
    for start in t.steps(1, lasts=1000):
        with t.scope("decoder", start, start + 50), t.op("aten::mm", start, start + 40, sequence=7):
            pass
        with t.backward("MmBackward0", start + 60, start + 100, sequence=7), t.op("aten::mm", start + 61, start + 90):
            t.launch(at=start + 70, lasts=300, kernel="gemm")
    (kernel,) = shares(t)
    assert kernel.module == ("decoder",)


def test_collectives_are_left_out_whatever_their_order_in_the_file() -> None:
    """Those of another stream may be launched first and begin last."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.collective(at=start + 1, begins=start + 600, until=start + 900, stream=20)
        t.collective(at=start + 20, begins=start + 40, until=start + 500, stream=21)
        t.launch(at=start + 40, lasts=300, kernel="gemm")
    assert [(k.name, k.share) for k in shares(t)] == [("gemm", 1.0)]


@pytest.mark.parametrize("most", [0, 1])
def test_no_more_than_asked(most: int) -> None:
    """Nor any of a trace without kernels."""
    t = TraceBuilder()
    for start in t.steps(1, lasts=1000):
        t.launch(at=start + 1, lasts=300, kernel="gemm")
        t.launch(at=start + 20, lasts=100, kernel="add")
    assert len(shares(t, most)) == most
    assert shares(TraceBuilder()) == ()
