"""Each question that a rule may ask about a call is answered on a trace of a few lines."""

from __future__ import annotations

import pytest

from syncscan.detect import Call, calls_of
from tests.builder import TraceBuilder

ITEM = "aten::item > aten::_local_scalar_dense"


def only(t: TraceBuilder) -> Call:
    (call,) = calls_of(t.trace())
    return call


def inside(*names: str) -> Call:
    """A synchronize inside these ops."""
    t = TraceBuilder()
    for depth, name in enumerate(names):
        t.op(name, 10 + depth, 900 - depth)
    t.call("cudaStreamSynchronize", 100, 500)
    return only(t)


def framed(*frames: str, with_stack: bool = True) -> Call:
    """A synchronize inside these Python frames, outermost first."""
    t = TraceBuilder()
    for depth, name in enumerate(frames):
        t.frame(name, 10 + depth, 900 - depth)
    t.call("cudaStreamSynchronize", 100, 500)
    return only(t)


def test_the_ops_around_it_have_parts() -> None:
    """The engine and the node are passed over for `top`, not for `op`; the leaf is the innermost."""
    call = inside("autograd::engine::evaluate_function: IndexBackward0", "IndexBackward0", "aten::index", "aten::copy_")
    assert (call.op, call.top, call.leaf) == ("IndexBackward0", "aten::index", "aten::copy_")
    assert call.backward == "IndexBackward0"
    assert call.ops[1:] == ("IndexBackward0", "aten::index", "aten::copy_")


def test_without_ops_all_parts_are_empty() -> None:
    """A bare synchronize."""
    call = inside()
    assert (call.ops, call.op, call.top, call.leaf, call.backward) == ((), "", "", "", "")
    assert not call.scalar


def test_a_number_is_read_by_one_op() -> None:
    """Whatever is around it."""
    assert inside("aten::equal", "aten::item", "aten::_local_scalar_dense").scalar
    assert not inside("aten::item").scalar


def test_an_op_is_asked_for_by_its_whole_name() -> None:
    """The outermost of several is the first."""
    call = inside("aten::unique_dim", "aten::nonzero", "aten::copy_")
    assert call.under("aten::copy_", "aten::nonzero")
    assert call.first("aten::copy_", "aten::nonzero") == "aten::nonzero"
    assert not call.under("aten::unique")
    assert call.first("aten::unique") == ""


def test_an_op_is_asked_for_by_a_part_of_its_name() -> None:
    """The outermost that has any of the parts is the one."""
    call = inside("aten::unique_dim", "aten::nonzero", "aten::copy_")
    assert call.op_with("copy", "zero") == "aten::nonzero"
    assert call.op_with("sparse") == ""


def test_scopes_leave_the_profilers_steps_out() -> None:
    """Outermost first; a part of a name is enough to ask for one."""
    t = TraceBuilder()
    with t.step(0, 1000), t.scope("outer", 10, 900), t.scope("FullyShardedDataParallel.rate_limiter", 20, 800):
        t.call("cudaStreamSynchronize", 100, 500)
    call = only(t)
    assert call.place.scopes == ("outer", "FullyShardedDataParallel.rate_limiter")
    assert call.place.in_scope("nothing", "rate_limiter")
    assert not call.place.in_scope("ProfilerStep")


def test_frames_are_those_around_the_call() -> None:
    """On its thread, up to its own bounds."""
    t = TraceBuilder()
    t.frame("train.py(1): main", 10, 900)
    t.frame("torch/cuda/__init__.py(9): synchronize", 100, 500)
    t.frame("<built-in function done>", 600, 700)
    with t.thread("other"):
        t.frame("other.py(1): run", 1, 990)
    t.call("cudaStreamSynchronize", 100, 500)
    call = only(t)
    assert call.place.frames == ("train.py(1): main", "torch/cuda/__init__.py(9): synchronize")
    assert call.profiled


def test_captured_lines_stand_in_where_the_profiler_took_no_stacks() -> None:
    """Then C functions aren't shown."""
    t = TraceBuilder()
    t.exact(100, ("torch/cuda/__init__.py", 9, "synchronize"), ("train.py", 4, "main"))
    t.call("cudaStreamSynchronize", 100, 500)
    call = only(t)
    assert call.place.frames == ("train.py(4): main", "torch/cuda/__init__.py(9): synchronize")
    assert not call.profiled


def test_a_librarys_frames_are_those_below_the_programs_innermost_one() -> None:
    """The program's callers are no part of the call."""
    call = framed(
        "torch/nn/parallel/distributed.py(5): forward",
        "model.py(3): forward",
        "<built-in function x>",
        "torch/distributions/normal.py(9): __init__",
        "nn.Module: Net_0",
        "torch/_tensor.py(7): item",
    )
    assert [frame.file for frame in call.place.frames_in_libraries] == [
        "torch/distributions/normal.py",
        "torch/_tensor.py",
    ]
    assert call.place.in_library("torch/distributions")
    assert not call.place.in_library("torch/nn/parallel")
    assert call.place.in_frame("torch/nn/parallel")
    assert not call.place.in_frame("torch/optim")


def test_gpytorchs_distributions_arent_torchs() -> None:
    """A package is compared folder by folder."""
    call = framed("train.py(1): main", "gpytorch/distributions/multivariate_normal.py(2): __init__")
    assert call.place.in_library("gpytorch/distributions")
    assert not call.place.in_library("torch/distributions")


def test_functions_are_asked_for_by_how_they_begin() -> None:
    """A library's, or any."""
    call = framed("train.py(1): save_all", "torch/serialization.py(2): save", "torch/_tensor.py(3): cpu")
    assert call.place.in_library_function("load", "save")
    assert not call.place.in_library_function("save_all", "ave")
    assert call.place.in_function("save_all")
    assert not call.place.in_function("all")


@pytest.mark.parametrize(
    ("frame", "called"),
    [
        ("<built-in method item of Tensor object at 0x1>", True),
        ("<built-in function item>", True),
        ("<built-in method item_size of Tensor object at 0x1>", False),
        ("<built-in function items>", False),
        ("train.py(1): item", False),
    ],
)
def test_a_c_function_is_known_by_its_frame(frame: str, called: bool) -> None:
    """The innermost one, by its whole name."""
    assert framed("train.py(1): main", frame).place.called("tolist", "item") == called
    assert not framed(frame, "train.py(1): main").place.called("item")


def test_before_and_after_are_what_the_program_called() -> None:
    """Ops inside of others are left out; calls count only afterwards; a step's borders end both."""
    t = TraceBuilder()
    t.op("aten::step_before", 1, 2)
    with t.step(5, 1000):
        with t.op("aten::mm", 10, 20):
            t.op("aten::inner", 12, 15)
        t.call("cudaLaunchKernel", 22, 23)
        t.scope("scope", 25, 30)
        with t.op("aten::item", 40, 600):
            t.call("cudaStreamSynchronize", 100, 500)
        t.call("cudaEventQuery", 610, 611)
        t.op("aten::add", 620, 630)
    with t.step(1000, 2000):
        t.op("aten::step_after", 1010, 1020)
    call = only(t)
    assert call.before == ("aten::mm", "scope")
    assert call.after == ("cudaEventQuery", "aten::add")


def test_at_most_64_neighbours_are_reported() -> None:
    """On either side, the nearest."""
    t = TraceBuilder()
    for k in range(70):
        t.op(f"aten::before{k}", k, k + 0.5)
        t.op(f"aten::after{k}", 600 + k, 600.5 + k)
    t.call("cudaStreamSynchronize", 100, 500)
    call = only(t)
    assert (len(call.before), call.before[-1], call.before[0]) == (64, "aten::before69", "aten::before6")
    assert (len(call.after), call.after[0], call.after[-1]) == (64, "aten::after0", "aten::after63")


@pytest.mark.parametrize(("ns", "soon"), [(4_999, False), (5_000, True)])
def test_the_next_op_follows_the_op_that_waits(ns: int, soon: bool) -> None:
    """Not the call inside of it."""
    t = TraceBuilder()
    with t.op("aten::item", 40, 600):
        t.call("cudaStreamSynchronize", 100, 500)
    t.op("aten::slice", 605, 610)
    assert only(t).followed_within(ns) == soon


def test_nothing_follows_the_last_op() -> None:
    """However long one waits."""
    t = TraceBuilder()
    with t.op("aten::item", 40, 600):
        t.call("cudaStreamSynchronize", 100, 500)
    assert not only(t).followed_within(10**12)


def test_what_began_since_the_scope_opened() -> None:
    """The scope itself, and what lies before it, are left out; without a scope all of the thread counts."""
    t = TraceBuilder()
    t.op("aten::first", 1, 2)
    with t.scope("scope", 10, 900):
        t.op("aten::second", 20, 30)
        t.call("cudaStreamSynchronize", 100, 500)
        t.op("aten::third", 600, 610)
    assert only(t).since_scope == ("aten::second",)
    t = TraceBuilder()
    t.op("aten::first", 1, 2)
    t.call("cudaStreamSynchronize", 100, 500)
    assert only(t).since_scope == ("aten::first",)


def _is_set(op: str) -> bool:
    return op == "aten::set_"


def test_what_came_before_and_after_is_asked_as_far_as_a_rule_looks() -> None:
    """By place, by name, by what is so of a name, or since some ops in a row; nothing is no error."""
    t = TraceBuilder()
    for k, op in enumerate(("aten::empty", "aten::set_", "aten::copy_", "aten::item")):
        t.op(op, 10 * k, 10 * k + 5)
    t.call("cudaStreamSynchronize", 100, 500)
    call = only(t)
    assert call.before == ("aten::empty", "aten::set_", "aten::copy_", "aten::item")
    assert call.after == ()
    assert call.last_before_but("aten::item") == "aten::copy_"
    assert call.since(("aten::empty", "aten::set_"), most=8) == ("aten::copy_", "aten::item")
    assert call.since(("aten::empty", "aten::set_"), most=3) is None
    assert call.since(("aten::copy_", "aten::set_"), most=8) is None
    assert call.nearest_before(_is_set, 3) == "aten::set_"
    assert (call.nearest_before(_is_set, 2), call.nearest_after(_is_set, 3)) == ("", "")
