"""What the name of an event says: steps, runtime calls, graphs, collectives, Python frames."""

from __future__ import annotations

import pytest

from syncscan.model import names


@pytest.mark.parametrize(
    ("predicate", "yes", "no"),
    [
        (names.is_step, ["ProfilerStep#7", "ProfilerStep"], ["profiler", "Optimizer.step#SGD.step", ""]),
        (names.is_optimizer_step, ["Optimizer.step#SGD.step"], ["Optimizer.zero_grad#SGD.zero_grad", "optimizer"]),
        (names.is_graph_launch, ["cudaGraphLaunch", "hipGraphLaunch"], ["cudaLaunchKernel"]),
        (names.is_device_synchronise, ["cudaDeviceSynchronize", "DeviceSynchronize"], ["cudaStreamSynchronize"]),
        (names.is_collective, ["c10d::allreduce_", "nccl:all_reduce", "record_param_comms",
                               "_c10d_functional::all_reduce", "c10d_functional::wait"], ["aten::add", "my nccl:"]),
        (names.is_compiled_region, ["Torch-Compiled Region: 0/0"], ["## Call CompiledFxGraph abc ##", "aten::mm"]),
    ],
)  # fmt: skip
def test_a_predicate_knows_its_names(predicate: object, yes: list[str], no: list[str]) -> None:
    """And no others."""
    assert callable(predicate)
    assert [name for name in [*yes, *no] if predicate(name)] == yes


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("train.py(12): main", ("train.py", 12, "main")),
        ("a (1): b/c.py(3): <lambda>", ("a (1): b/c.py", 3, "<lambda>")),
        ("<string>(2): __init__", ("<string>", 2, "__init__")),
        ("<built-in method item of Tensor object at 0x1>", None),
        ("nn.Module: Net_0", None),
        ("train.py: main", None),
        ("train.py(" + "9" * 5000 + "): main", None),
    ],
)
def test_a_python_frame_is_told_from_a_builtin(name: str, parts: tuple[str, int, str] | None) -> None:
    """File, line and function."""
    assert names.frame_parts(name) == parts


def test_a_program_calls_no_engine() -> None:
    """Of the ops around something the outermost counts that isn't the engine's."""
    engine = "autograd::engine::evaluate_function: IndexBackward0"
    assert names.program_op([engine, "IndexBackward0", "aten::nonzero"]) == "IndexBackward0"
    assert names.program_op([engine]) == ""
