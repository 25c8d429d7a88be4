"""Where the host's time goes by samples: whose function, in which part of the step, and how long of a step as it is."""

from __future__ import annotations

from typing import Any

import pytest

from syncscan import api
from syncscan.model.finding import Phase
from syncscan.model.host import HostNode, SampledHost
from tests.builder import TraceBuilder
from tests.each import each

SITE = "/venv/lib/python3.12/site-packages/"
TORCH = SITE + "torch/"
MAIN = "/home/me/train.py:<module>:40"
MODULE = f"{TORCH}nn/modules/module.py:Module._wrapped_call_impl:1778"
BACKWARD = f"{TORCH}_tensor.py:Tensor.backward:600"
STEP = f"{TORCH}optim/optimizer.py:Optimizer.profile_hook_step.<locals>.wrapper:500"
LOADER = f"{TORCH}utils/data/dataloader.py:_BaseDataLoaderIter.__next__:700"


def table(**samples: Any) -> dict[str, Any]:
    """Capture's table of samples: `stacks` of FILE:FUNCTION:LINE, outermost first, with their counts."""
    frames: dict[tuple[str, str], int] = {}
    nodes: dict[tuple[int, int, int], int] = {}
    self_counts: list[int] = []
    for stack, count in samples["stacks"].items():
        at = -1
        for text in stack:
            file, function, line = text.rsplit(":", 2)
            frame = frames.setdefault((file, function), len(frames))
            at = nodes.setdefault((at, frame, int(line)), len(nodes))
            self_counts += [0] * (len(nodes) - len(self_counts))
        self_counts[at] += count
    rest = {key: value for key, value in samples.items() if key != "stacks"}
    tree = {"frames": [list(f) for f in frames], "nodes": [[*n, c] for n, c in zip(nodes, self_counts, strict=True)]}
    return {"steps": 10, "step_us": 1000.0, **tree, **rest}


def sampled(stacks: dict[tuple[str, ...], int], **more: Any) -> SampledHost:
    """Return the summary of these stacks in a trace of two steps of 1,500 µs, 1,000 without the profiler."""
    step_us, options = more.pop("unprofiled_step_us", 1000.0), more.pop("options", {})
    t = TraceBuilder(syncscan={"unprofiled_step_us": step_us, "host": table(stacks=stacks, **more)})
    for start in t.steps(2, lasts=1500):
        t.launch(at=start + 1, lasts=500)
    result = api.analyze_trace(t.trace(), **options).host_time.sampled
    assert result is not None
    return result


def phase_of(*stack: str) -> Phase:
    """The phase of the innermost frame."""
    return sampled({stack: 1}).nodes[-1].phase


def test_a_trace_without_samples_has_no_sampled_host() -> None:
    """And an empty frame of the same columns."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1500):
        t.launch(at=start + 1, lasts=500)
    analysis = api.analyze_trace(t.trace())
    assert analysis.host_time.sampled is None
    assert len(analysis.host) == 0


def test_times_are_of_the_step_as_it_is_without_a_profiler() -> None:
    """Samples become shares of the timed step; what the sampled steps took longer is told apart."""
    host = sampled({(MAIN,): 1, (MAIN, MODULE): 3}, step_us=1020.0)
    assert (host.step_us, host.steps, host.samples) == (1000.0, 10, 4)
    assert host.overhead == pytest.approx(0.02)
    assert [(n.us, n.self_us) for n in host.nodes] == [(1000.0, 250.0), (750.0, 750.0)]


def test_a_step_that_the_user_timed_counts_before_the_capture_s() -> None:
    """As for every other number; what sampling cost is told by what capture timed."""
    host = sampled({(MAIN,): 1}, step_us=1020.0, options={"step_ms": 0.5})
    assert (host.step_us, host.overhead) == (500.0, pytest.approx(0.02))


def test_where_no_step_was_timed_the_sampled_ones_tell() -> None:
    """Then nobody knows what sampling cost."""
    host = sampled({(MAIN,): 1}, step_us=1020.0, unprofiled_step_us=None)
    assert (host.step_us, host.overhead) == (1020.0, None)


def test_callers_come_first_and_the_longest_call_before_the_others() -> None:
    """As one reads a tree."""
    host = sampled({(MAIN, "a.py:f:1"): 1, (MAIN, "a.py:g:2"): 5, (MAIN, "a.py:g:2", "a.py:h:3"): 1, ("b.py:r:1",): 2})
    assert [(n.function, n.parent) for n in host.nodes] == [("<module>", -1), ("g", 0), ("h", 1), ("f", 0), ("r", -1)]


@pytest.mark.parametrize(
    ("file", "owner"),
    [
        ("/home/me/train.py", "user"),
        (f"{SITE}transformers/trainer.py", "transformers"),
        (f"{TORCH}nn/functional.py", "torch"),
        ("/usr/lib/python3.12/json/decoder.py", "python"),
        ("<string>", "python"),
        ("/tmp/torchinductor_me/ab/cab.py", "torch"),
    ],
)
def test_a_function_s_owner_is_its_package(file: str, owner: str) -> None:
    """Code that torch's compiler wrote is torch's."""
    (node,) = sampled({(f"{file}:f:1",): 1}).nodes
    assert node.owner == owner


@each(
    ("stack", "phase"),
    [
        ((MAIN,), Phase.OTHER),
        ((MAIN, MODULE, "/home/me/net.py:Net.forward:5"), Phase.FORWARD),
        ((MAIN, f"{TORCH}nn/functional.py:cross_entropy:3"), Phase.FORWARD),
        ((MAIN, BACKWARD, f"{TORCH}autograd/graph.py:_engine_run_backward:900"), Phase.BACKWARD),
        ((MAIN, f"{SITE}deepspeed/runtime/engine.py:DeepSpeedEngine.backward:9"), Phase.BACKWARD),
        ((MAIN, "/home/me/train.py:backward:9"), Phase.OTHER),
        ((MAIN, MODULE, f"{TORCH}autograd/__init__.py:grad:300"), Phase.BACKWARD),
        ((MAIN, BACKWARD, f"{TORCH}utils/checkpoint.py:recompute:9", MODULE), Phase.BACKWARD),
        ((MAIN, BACKWARD, "/home/me/train.py:hook:9", STEP), Phase.OPTIMIZER),
        ((MAIN, STEP, "/home/me/muon.py:Muon.step:9"), Phase.OPTIMIZER),
        ((MAIN, f"{TORCH}optim/optimizer.py:wrapper:500"), Phase.OPTIMIZER),
        ((MAIN, f"{TORCH}optim/optimizer.py:Optimizer.zero_grad:9"), Phase.OPTIMIZER),
        ((MAIN, f"{TORCH}optim/lr_scheduler.py:LRScheduler.step:9"), Phase.OPTIMIZER),
        ((MAIN, f"{TORCH}amp/grad_scaler.py:GradScaler.step:9"), Phase.OPTIMIZER),
        ((MAIN, f"{TORCH}amp/grad_scaler.py:GradScaler.scale:9"), Phase.OTHER),
        ((MAIN, STEP, f"{TORCH}optim/adam.py:Adam.step:9", "/home/me/train.py:closure:3"), Phase.OTHER),
        ((MAIN, STEP, f"{TORCH}optim/adam.py:Adam.step:9", "/home/me/train.py:f:3", MODULE), Phase.FORWARD),
        ((MAIN, STEP, f"{SITE}lightning/x.py:P._wrap_closure:3", MODULE), Phase.FORWARD),
        ((MAIN, STEP, f"{SITE}lightning/x.py:P._wrap_closure:3", BACKWARD), Phase.BACKWARD),
        ((MAIN, STEP, f"{TORCH}_inductor/utils.py:run:3"), Phase.OPTIMIZER),
        ((MAIN, LOADER), Phase.DATA),
        ((MAIN, LOADER, "/home/me/data.py:collate:3", MODULE), Phase.DATA),
        ((MAIN, f"{TORCH}_functorch/_aot_autograd/runtime_wrappers.py:f:3"), Phase.FORWARD),
        ((MAIN, f"{SITE}transformers/trainer.py:Trainer._maybe_log:3"), Phase.OTHER),
    ],
)
def test_the_phase_is_recognized_by_torch_s_own_calls_around(stack: tuple[str, ...], phase: Phase) -> None:
    """Whoever made them: the program, a trainer, a hook, a closure."""
    assert phase_of(*stack) is phase


def line(number: int) -> str:
    return f"/home/me/train.py:step:{number}"


def lines(stacks: dict[tuple[str, ...], int]) -> dict[int, HostNode]:
    return {n.line: n for n in sampled(stacks).nodes if n.function == "step"}


def test_a_line_of_one_phase_is_of_it_with_its_own_time() -> None:
    """`loss = model(x).square().mean()`: the ops behind the call are forward too. A loop's line has several phases."""
    result = lines({(line(3),): 5, (line(3), MODULE): 5, (line(4), BACKWARD): 9, (line(5),): 2})
    assert [result[n].phase for n in (3, 4, 5)] == [Phase.FORWARD, Phase.BACKWARD, Phase.OTHER]
    host = sampled({(MAIN, line(3), MODULE): 5, (MAIN, line(4), BACKWARD): 5})
    assert host.nodes[0].phase is Phase.OTHER


def test_a_late_sample_does_not_make_a_line_of_two_phases() -> None:
    """Up to one in ten; more are calls of their own."""
    assert lines({(line(3), MODULE): 92, (line(3), BACKWARD): 8})[3].phase is Phase.FORWARD
    assert lines({(line(3), MODULE): 88, (line(3), BACKWARD): 12})[3].phase is Phase.OTHER


def test_phases_and_owners_add_up_to_the_step() -> None:
    """Each counts what its functions take themselves."""
    host = sampled({(MAIN,): 1, (MAIN, line(3), MODULE): 4, (MAIN, line(4), BACKWARD): 3, (MAIN, line(5), LOADER): 2})
    assert [(s.name, s.us, s.share) for s in host.by_phase()] == [
        ("forward", 400.0, 0.4),
        ("backward", 300.0, 0.3),
        ("data", 200.0, 0.2),
        ("other", 100.0, 0.1),
    ]
    assert [(s.name, s.us) for s in host.by_owner()] == [("torch", 900.0), ("user", 100.0)]


def test_a_deep_tree_takes_no_deep_recursion() -> None:
    """A file may hold a chain as long as a tree may be."""
    depth = 20_000
    nodes = [[number - 1, 0, 1, int(number == depth - 1)] for number in range(depth)]
    host = {"steps": 1, "step_us": 10.0, "frames": [["a.py", "f"]], "nodes": nodes}
    t = TraceBuilder(syncscan={"host": host})
    for start in t.steps(2, lasts=1500):
        t.launch(at=start + 1, lasts=500)
    analysis = api.analyze_trace(t.trace())
    assert analysis.host.depth.iloc[-1] == depth - 1
    assert analysis.host.us.iloc[0] == pytest.approx(10.0)
