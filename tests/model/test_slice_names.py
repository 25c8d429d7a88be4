"""Names of ranges, ops, threads and Python frames have meanings."""

from __future__ import annotations

from syncscan.model import slice_names
from tests.each import each


def test_a_step_has_the_number_that_the_profiler_gave_it() -> None:
    """Numbers that no int64 holds are none, nor is what only begins like a step."""
    numbers = {
        name: slice_names.step_number(name) for name in ("ProfilerStep#7", "ProfilerStep7", "ProfilerStep", "step#7")
    }
    assert numbers == {"ProfilerStep#7": 7, "ProfilerStep7": 7, "ProfilerStep": None, "step#7": None}
    assert slice_names.step_number("ProfilerStep#" + "9" * 18) == 10**18 - 1
    assert slice_names.step_number("ProfilerStep#" + "9" * 19) is None


def test_a_step_without_a_number_is_no_scope_of_the_programs_either() -> None:
    """It is the profiler's by its first word."""
    assert slice_names.is_step("ProfilerStep")
    assert not slice_names.is_step("profiler step")


def test_ops_that_hold_others_are_distinguished_from_ops_that_do_work() -> None:
    """The engine's, a node's, the compiler's: which op was called is asked of the others."""
    holds = [
        "autograd::engine::evaluate_function: MulBackward0",
        "torch::autograd::AccumulateGrad",
        "MulBackward0",
        "Torch-Compiled Region: 0/0",
        "## Call CompiledFxGraph fabc ##",
        "TorchDynamo Cache Lookup",
        "CompiledFunction",
    ]
    work = ["aten::mm", "aten::index_backward", "c10d::allreduce_", "Optimizer.step#SGD.step", "MulBackward0 of mine"]
    assert list(filter(slice_names.is_wrapper, [*holds, *work])) == holds


def test_a_node_lies_in_the_engines_range_of_it() -> None:
    """`IndexBackward0` is the node; what the engine calls its range around it, and ops of that name's like, aren't."""
    ops = ["autograd::engine::evaluate_function: IndexBackward0", "IndexBackward0", "aten::index_backward"]
    assert list(filter(slice_names.is_backward_node, ops)) == ["IndexBackward0"]
    assert list(filter(slice_names.is_engine, ops)) == ops[:1]


def test_a_compiled_graph_lies_in_a_compiled_region() -> None:
    """Dynamo's region may run parts eagerly, Inductor's graph none."""
    region, graph = "Torch-Compiled Region: 0/0", "## Call CompiledFxGraph fabc ##"
    assert [slice_names.is_compiled_region(region), slice_names.is_compiled_region(graph)] == [True, False]
    assert [slice_names.is_compiled_graph(region), slice_names.is_compiled_graph(graph)] == [False, True]


def test_an_optimizers_step_is_distinguished_from_what_else_it_does() -> None:
    """Both are the optimizer's; a step of the program's own of that name is neither."""
    scopes = ["Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad", "optimizer.step#1"]
    assert list(filter(slice_names.is_optimizer, scopes)) == scopes[:2]
    assert list(filter(slice_names.is_optimizer_step, scopes)) == scopes[:1]


def test_a_loaders_workers_are_recognized_by_its_iterator() -> None:
    """Time in a loader without them is the thread's own work."""
    scopes = [f"enumerate(DataLoader)#_{kind}DataLoaderIter.__next__" for kind in ("MultiProcessing", "SingleProcess")]
    assert list(filter(slice_names.is_loader_with_workers, scopes)) == scopes[:1]
    assert list(filter(slice_names.is_loader_without_workers, scopes)) == scopes[1:]
    assert list(filter(slice_names.is_loader, [*scopes, "enumerate(batches)"])) == scopes


def test_torchdatas_loader_is_one_too() -> None:
    """Its `StatefulDataLoader` has iterators of its own, called by torch's scope."""
    kinds = ("_StatefulMultiProcessing", "_StatefulSingleProcess")
    scopes = [f"enumerate(DataLoader)#{kind}DataLoaderIter.__next__" for kind in kinds]
    assert list(filter(slice_names.is_loader_with_workers, scopes)) == scopes[:1]
    assert list(filter(slice_names.is_loader_without_workers, scopes)) == scopes[1:]
    assert list(filter(slice_names.is_loader, scopes)) == scopes


def test_collectives_are_recognized_by_who_made_the_op() -> None:
    """c10d's op, its record, NCCL's range, and the functional ones of compiled programs."""
    ops = (
        "c10d::allreduce_ record_param_comms nccl:all_reduce _c10d_functional::all_reduce c10d_functional::wait".split()
    )
    assert list(filter(slice_names.is_collective, [*ops, "aten::all", "my nccl:"])) == ops


def test_threads_of_torch_are_distinguished_from_the_programs() -> None:
    """Autograd's runs a part of the program; those that pin and those that watch over NCCL run none."""
    threads = ["thread 7 (pt_autograd_0)", "thread 8 (pt_data_pin)", "pt_nccl_watchdg", "thread 9 (python)"]
    assert list(filter(slice_names.is_autograd_thread, threads)) == threads[:1]
    assert list(filter(slice_names.is_service_thread, threads)) == threads[1:3]


def test_a_frame_of_any_length_is_reported_soon() -> None:
    """3 MB of what looks like lines, and no function: tried from each of them on it would take hours."""
    assert slice_names.frame_parts("a(1): " * 500_000 + "\n") is None


@each(
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
def test_a_python_frame_is_distinguished_from_a_builtin(name: str, parts: tuple[str, int, str] | None) -> None:
    """A frame has a file, a line that a number holds, and a function; built-ins and modules have no line."""
    assert slice_names.frame_parts(name) == parts


def test_a_program_calls_no_engine() -> None:
    """The outermost op that isn't the engine's counts."""
    engine = "autograd::engine::evaluate_function: IndexBackward0"
    assert slice_names.program_op([engine, "IndexBackward0", "aten::nonzero"]) == "IndexBackward0"
    assert slice_names.program_op([engine]) == ""
