"""Where a sync point belongs: op, scope, module, line, phase, thread and step."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.attribute import attribute
from syncscan.detect import detect
from syncscan.model.finding import Attribution, Confidence, Phase, Source
from tests.builder import TraceBuilder


def places(t: TraceBuilder) -> tuple[Attribution, ...]:
    trace = t.trace()
    points, _ = detect(trace)
    return tuple(point.where for point in attribute(trace, points))


def test_op_scope_thread_and_step():
    """The chain of ops and scopes is outermost first, and ProfilerStep isn't a scope."""
    t = TraceBuilder()
    t.scope("loss", 5, 900)
    with t.thread("python", tid=100), t.step(0, 1000, number=7), t.scope("mask", 10, 800):
        t.op("aten::index", 15, 700)
        t.sync("aten::nonzero", at=20, wait=300)
    (place,) = places(t)
    assert place.op == "aten::index"
    assert place.op_stack == ("aten::index", "aten::nonzero")
    assert place.scope == ("loss", "mask")
    assert place.thread == "thread 100 (python)"
    assert place.step == 7


def test_without_stacks_nothing_is_claimed():
    """No frames, no line: the source is None, the owner unknown, the confidence medium."""
    t = TraceBuilder()
    t.sync("aten::item", at=0, wait=10)
    (place,) = places(t)
    assert (place.source, place.owner, place.confidence) == (None, "unknown", Confidence.MEDIUM)


def test_frames_give_the_function():
    """With the profiler's stacks the place is the function, and says that the line isn't exact."""
    t = TraceBuilder()
    with t.frame("train.py(10): step", 0, 100), t.frame("nn.Module: Net_0", 1, 99):
        t.sync("aten::item", at=5, wait=10)
    (place,) = places(t)
    assert place.source == Source("train.py", 10, "step", exact=False)
    assert place.module == ("Net_0",)
    assert place.owner == "user"


def test_the_only_candidate_in_the_source_becomes_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the file is at hand, the only line of the function that can be it is named, still as inexact."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text("def step(x):\n    y = x * 2\n    n = y.item()\n    return n\n")
    t = TraceBuilder()
    with t.frame(f"{file}(1): step", 0, 100):
        t.sync("aten::item", at=5, wait=10)
    (place,) = places(t)
    assert place.source == Source(str(file), 3, "step", exact=False, candidates=(3,))


def test_a_recorded_stack_wins_over_frames():
    """Capture's table gives the exact line and the module, and the profiler's frames are not asked."""
    t = TraceBuilder()
    with t.frame("train.py(10): step", 0, 100):
        t.sync("aten::item", at=5, wait=10)
    t.exact(8, ("torch/_tensor.py", 7, "__float__"), ("train.py", 42, "step"), module="Net/head")
    (place,) = places(t)
    assert place.source == Source("train.py", 42, "step", exact=True)
    assert place.called_from == Source("torch/_tensor.py", 7, "__float__", exact=True)
    assert place.module == ("Net", "head")
    assert place.confidence is Confidence.HIGH


def test_recorded_stacks_are_joined_in_order():
    """Each of two syncs close behind one another gets its own line."""
    t = TraceBuilder()
    end = t.sync("aten::item", at=5, wait=10)
    t.sync("aten::item", at=end + 1, wait=10)
    t.exact(8, ("train.py", 1, "step"))
    t.exact(end + 4, ("train.py", 2, "step"))
    assert [p.source.line for p in places(t) if p.source] == [1, 2]


def test_an_op_that_waits_twice_and_calls_back_once_keeps_its_line():
    """However long the first wait took."""
    t = TraceBuilder()
    with t.op("aten::unique_dim", 0, 9000):
        end = t.sync("aten::nonzero", at=10, wait=5000)
        t.sync("aten::nonzero", at=end + 5, wait=10)
    t.exact(13, ("train.py", 1, "step"))
    assert [p.source.line for p in places(t) if p.source] == [1, 1]


def test_an_op_that_calls_back_at_its_last_wait_only_keeps_its_line():
    """As `linalg.eigh`: the solver's own copies wait before the check that calls back."""
    t = TraceBuilder()
    with t.op("aten::linalg_eigh", 0, 900):
        end = t.sync("aten::nonzero", at=10, wait=50)
        t.sync("aten::item", at=end + 300, wait=10)
    t.exact(end + 303, ("train.py", 1, "step"))
    assert [p.source.line for p in places(t) if p.source] == [1, 1]


def test_a_record_from_before_the_op_is_not_taken():
    """It belongs to something that ran just before."""
    t = TraceBuilder()
    t.sync("aten::item", at=500, wait=10)
    t.exact(300, ("train.py", 1, "step"))
    (place,) = places(t)
    assert place.source is None


def test_a_wait_that_calls_nobody_back_has_the_line_of_the_timed_call_around_it():
    """As in `empty_cache()`, whose time capture takes instead."""
    t = TraceBuilder()
    t.sync("aten::coalesce", at=500, wait=10)
    t.exact(400, ("train.py", 7, "step"))
    (row,) = t.metadata["syncscan"]["lines"]["syncs"]
    t.metadata["syncscan"]["lines"].update(syncs=[], calls=[[row[0], row[0] + 200_000, row[1], row[3]]])
    (place,) = places(t)
    assert place.source == Source("train.py", 7, "step", exact=True)


def test_recorded_stacks_of_another_thread_are_not_taken():
    """A record belongs to its thread."""
    t = TraceBuilder()
    t.sync("aten::item", at=5, wait=10)
    with t.thread("other"):
        t.op("aten::add", 6, 9)
        t.exact(8, ("worker.py", 1, "run"))
    (place,) = places(t)
    assert place.source is None


def forward_and_backward(**forward: int) -> TraceBuilder:
    """A step whose `x[mask]` syncs in forward and again in backward, on autograd's thread."""
    t = TraceBuilder()
    with t.step(0, 2000):
        t.frame("train.py(10): loss", 5, 400)
        with t.scope("mask", 10, 400), t.op("aten::index", 15, 390, **forward):
            t.sync("aten::nonzero", at=20, wait=300)
        with t.thread("pt_autograd_0"), t.backward("IndexBackward0", 500, 900, sequence=5):
            t.sync("aten::nonzero", at=510, wait=200)
    return t


def test_backward_leads_to_its_forward_op():
    """By sequence number a backward sync gets scope and line of the forward op, and the phase backward."""
    forward, backward = places(forward_and_backward(sequence=5))
    assert (forward.phase, backward.phase) == (Phase.FORWARD, Phase.BACKWARD)
    assert backward.op == "IndexBackward0"
    assert backward.scope == forward.scope == ("mask",)
    assert backward.source == forward.source == Source("train.py", 10, "loss", exact=False)
    assert backward.thread == "thread 101 (pt_autograd_0)"


def test_backward_follows_the_arrow_where_numbers_are_missing():
    """Without a matching sequence number the fwdbwd arrow leads back."""
    t = forward_and_backward()
    t.arrow(15, 500)
    _, backward = places(t)
    assert backward.scope == ("mask",)


def test_backward_without_any_link_claims_no_scope():
    """Neither number nor arrow: no scope is invented."""
    _, backward = places(forward_and_backward())
    assert (backward.scope, backward.source, backward.phase) == ((), None, Phase.BACKWARD)


def test_the_latest_forward_op_before_it_made_the_node():
    """Several forward ops share a number: the last to start made the backward op, and none of a later step."""
    t = TraceBuilder()
    with t.scope("early", 0, 50):
        t.op("aten::mul", 10, 20, sequence=5)
    with t.scope("late", 60, 100):
        t.op("aten::index", 70, 80, sequence=5)
    with t.thread("pt_autograd_0"), t.backward("IndexBackward0", 500, 900, sequence=5):
        t.sync("aten::nonzero", at=510, wait=200)
    with t.scope("next step", 1000, 1100):
        t.op("aten::index", 1010, 1020, sequence=5)
    (place,) = places(t)
    assert place.scope == ("late",)


def test_exact_line_of_backward_is_that_of_forward():
    """Autograd's thread has no frames, so the line recorded in the forward op stands for the backward sync."""
    t = forward_and_backward(sequence=5)
    t.exact(24, ("train.py", 12, "loss"))
    forward, backward = places(t)
    assert forward.source == backward.source == Source("train.py", 12, "loss", exact=True)


@pytest.mark.parametrize(("profiled", "line"), [(True, 5), (False, 30)])
def test_the_line_that_called_backward_stands_in_where_nothing_tells_the_forward_op_s(profiled: bool, line: int):
    """Capture lends a sync on autograd's thread the stack that calls `backward`; the profiler's frames tell more."""
    t = TraceBuilder()
    if profiled:
        t.frame("train.py(5): loss", 0, 100)
    t.op("aten::index", 10, 20, sequence=5)
    with t.thread("pt_autograd_0"), t.backward("IndexBackward0", 500, 900, sequence=5):
        t.sync("aten::nonzero", at=510, wait=200)
        t.exact(515, ("train.py", 30, "train"))
    main = t.tid
    t.metadata["syncscan"]["lines"]["syncs"][0][-1] = main
    (place,) = places(t)
    assert place.source is not None
    assert (place.source.line, place.source.exact) == (line, not profiled)


def test_phases():
    """Forward before the step's first backward op, optimizer and data by their annotations, other behind."""
    t = TraceBuilder()
    with t.step(0, 3000):
        with t.scope("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 100):
            t.sync("aten::item", at=2, wait=10)
        t.sync("aten::item", at=110, wait=10)
        with t.thread("pt_autograd_0"), t.backward("MulBackward0", 500, 600):
            t.launch(at=510, lasts=5)
        with t.scope("Optimizer.step#Adam.step", 1000, 1100):
            t.sync("aten::item", at=1010, wait=10)
        t.sync("aten::item", at=1200, wait=10)
    assert [p.phase for p in places(t)] == [Phase.DATA, Phase.FORWARD, Phase.OPTIMIZER, Phase.OTHER]


def test_inference_has_no_forward_phase():
    """Without any backward the phase is other: nothing says that this is training."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.sync("aten::item", at=110, wait=10)
    (place,) = places(t)
    assert place.phase is Phase.OTHER


@pytest.mark.parametrize(("at", "phase"), [(498, Phase.FORWARD), (499, Phase.OTHER)])
def test_forward_ends_where_backward_begins(at: float, phase: Phase):
    """On another thread: what begins at the same moment is no forward pass any more."""
    t = TraceBuilder()
    with t.step(0, 1000):
        t.call("cudaStreamSynchronize", at, at + 100)
    with t.thread("pt_autograd_0"), t.backward("MulBackward0", 500, 600):
        t.launch(at=510, lasts=5)
    assert [p.phase for p in places(t)] == [phase]


@pytest.mark.parametrize(("at", "phase"), [(100, Phase.FORWARD), (1500, Phase.OPTIMIZER)])
def test_a_closure_is_forward_until_its_backward(at: float, phase: Phase):
    """Lightning runs the training step in `Optimizer.step`: what comes before its backward pass is no update."""
    t = TraceBuilder()
    with t.step(0, 5000), t.scope("Optimizer.step#Adam.step", 10, 4000):
        t.sync("aten::item", at=at, wait=300)
        with t.thread("pt_autograd_0"), t.backward("MulBackward0", 1000, 1100):
            t.launch(at=1010, lasts=10)
    (place,) = places(t)
    assert place.phase is phase
