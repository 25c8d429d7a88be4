"""What the name of an event says: steps, collectives, Python frames."""

from __future__ import annotations

import pytest

from syncscan.model import names


@pytest.mark.parametrize(
    ("predicate", "yes", "no"),
    [
        (names.is_step, ["ProfilerStep#7", "ProfilerStep"], ["profiler", "Optimizer.step#SGD.step", ""]),
        (names.is_optimizer_step, ["Optimizer.step#SGD.step"], ["Optimizer.zero_grad#SGD.zero_grad", "optimizer"]),
        (names.is_collective, ["c10d::allreduce_", "nccl:all_reduce", "record_param_comms",
                               "_c10d_functional::all_reduce", "c10d_functional::wait"], ["aten::add", "my nccl:"]),
        (names.is_compiled_region, ["Torch-Compiled Region: 0/0"], ["## Call CompiledFxGraph abc ##", "aten::mm"]),
    ],
)  # fmt: skip
def test_a_predicate_knows_its_names(predicate: object, yes: list[str], no: list[str]) -> None:
    """And no others."""
    assert callable(predicate)
    assert [name for name in [*yes, *no] if predicate(name)] == yes


def test_a_frame_of_any_length_is_told_soon() -> None:
    """3 MB of what looks like lines, and no function: tried from each of them on it would take hours."""
    assert names.frame_parts("a(1): " * 500_000 + "\n") is None


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
