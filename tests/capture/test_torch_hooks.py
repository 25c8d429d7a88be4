"""Hooks leave no trace: what is replaced is put back, and torch's compiler never sees what is ours."""

from __future__ import annotations

import copy
import importlib
import pickle
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

import syncscan
from syncscan.capture import sync_lines, torch_hooks
from syncscan.capture.cycle_recorder import Garbage
from syncscan.capture.optimizer_hook import OptimizerHook
from syncscan.capture.repeated_loop import Rounds
from syncscan.capture.script_capture import ScopeWatch
from syncscan.capture.signals import TerminationHandler
from syncscan.capture.stack_timer import Ticks
from syncscan.capture.torch_hooks import ATTRIBUTE, ModuleCalls, replaced, unseen
from syncscan.patches import when_imported
from syncscan.source.loops import LoopLines
from tests.as_on_a_gpu import Machine, machine

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch._dynamo")
__all__ = ["machine"]

SOURCES = Path(syncscan.__file__).parent
PUTS = re.compile(
    r"register_\w*(_hook|\{)|register_start_callback\(|replaced\(|put_first\(|\.meta_path\.insert"
    r"|warnings\.(showwarning|filters) ="
    r"|signal\.signal\(|\.addHandler\(|gc\.callbacks\.append|sys\.set(trace|profile)\(|set_local_events\("
    r"|register_at_fork\(|_activate_gpu_trace\(|__(call|enter|exit)__(, \w+\.__exit__)? = "
    r"|Torch(Dispatch|Function)Mode\)"
    r"|\.__class__ = \w|\[ATTRIBUTE\] = |set_sync_debug_mode\(|_current_frames\(|_remote_debug"
)
"""Functions that put something into a process, or take it out again."""
ELSEWHERE = ("fixing", "dryrun", "detect", "whatif", "habits", "cli", "lint", "load")
"""Packages that don't run in a program's own process: a dry run is a simulation, and the others read files."""


class Network(torch.nn.Module):  # type: ignore[misc]
    """A program's network; `calls` tells its eager calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


class OthersOptimizer(torch.optim.Optimizer):  # type: ignore[misc]
    """An optimizer whose step is one graph; torch's own break it."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Descend."""
        for group in self.param_groups:
            for p in group["params"]:
                p.add_(p.grad, alpha=-0.1)


network = Network()
x = torch.ones(2, 4)
Backend = Callable[[Any, Any], Any]


def whole(backend: Backend) -> Callable[[], Any]:
    """A module as one graph."""
    compiled = torch.compile(network, backend=backend, fullgraph=True)
    return lambda: compiled(x)


def function(backend: Backend) -> Callable[[], Any]:
    """A function around the module, with a scope, copies and `allow`."""

    def step(y: Any) -> Any:
        with torch.profiler.record_function("scope"), syncscan.allow("a reason"):
            buffer = torch.empty(2, 4)
            buffer.copy_(network(y), non_blocking=True)
        return buffer.to(torch.float64, non_blocking=True)

    compiled = torch.compile(step, backend=backend, fullgraph=True)
    return lambda: compiled(x)


def broken(backend: Backend) -> Callable[[], Any]:
    """A function whose graph breaks, with a loop, a backward pass and an optimizer of torch's."""
    model = Network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(y: Any) -> Any:
        for _ in range(2):
            loss = model(y).sum()
            loss.backward()
            dynamo.graph_break()
        optimizer.step()
        return loss * 2

    compiled = torch.compile(step, backend=backend)
    return lambda: compiled(x)


def others_optimizer(backend: Backend) -> Callable[[], Any]:
    """A step of another optimizer as one graph."""
    optimizer = OthersOptimizer([torch.nn.Parameter(torch.ones(3))])
    optimizer.param_groups[0]["params"][0].grad = torch.ones(3)
    compiled = torch.compile(lambda: optimizer.step(), backend=backend, fullgraph=True)
    return lambda: compiled()


def plain(backend: Backend) -> Callable[[], Any]:
    """Everything that isn't dynamo's backend: exported, scripted, traced, transformed, copied."""

    def made() -> list[str]:
        model = copy.deepcopy(network)
        weights = dict(model.named_parameters())
        exported = torch.export.export(model, (x,))
        strict = torch.export.export(model, (x,), strict=True)
        return [
            str(exported.graph),
            str(strict.graph),
            str(torch.jit.script(network).graph),
            re.sub(r"%\S+|___torch_mangle_\d+", "", str(torch.jit.trace(network, x).inlined_graph)),
            str(torch.fx.symbolic_trace(network).graph),
            str(torch.func.vmap(network)(x).shape),
            str(torch.func.grad(lambda y: torch.func.functional_call(network, weights, (y,)).sum())(x).shape),
            str(ATTRIBUTE in model.__dict__),
        ]

    return made


PROGRAMS = (whole, function, broken, others_optimizer, plain)


class Made:
    """The graphs and breaks of programs."""

    def __init__(self) -> None:
        self.graphs: list[str] = []

    def backend(self, graph: Any, inputs: Any) -> Any:
        """Keep a graph, and run it as it is."""
        self.graphs.append(graph.code)
        return graph.forward

    @property
    def breaks(self) -> int:
        """Return how often a graph broke, by dynamo's counter."""
        return sum(dynamo.utils.counters["graph_break"].values())


def started(what: Any, close: str = "close") -> Callable[[], None]:
    """Start something; return what ends it."""
    what.start()
    end: Callable[[], None] = getattr(what, close)
    return end


def opened(what: Any, *given: Any) -> Callable[[], None]:
    what.open(*given)
    close: Callable[[], None] = what.close
    return close


def monitoring() -> Callable[[], None]:
    rounds = Rounds([(broken.__code__, LoopLines(0, 1, 9999))], lambda number: None)
    return rounds.close if rounds.start() else pytest.skip("Python 3.12 watches jumps")


def watching_scopes() -> Callable[[], None]:
    watch = ScopeWatch(lambda: None)
    watch.watch(torch.autograd.profiler.record_function)
    return watch.unwatch


def recording() -> Callable[[], None]:
    sync_lines.begin()
    return lambda: sync_lines.end() and None


def called_back() -> Callable[[], None]:
    lists = sync_lines.registries("cuda")
    if lists is None:
        pytest.skip("this torch has no callbacks")
    stop: Callable[[], None] = sync_lines.start_callbacks(lists, sync_lines.functions())
    return stop


def both(*closing: Callable[[], None]) -> Callable[[], None]:
    return lambda: [close() for close in closing] and None


def guarding() -> Callable[[], None]:
    stack = ExitStack()
    stack.enter_context(syncscan.guard(on_violation="raise"))
    return stack.close


def terminating() -> Callable[[], None]:
    return TerminationHandler(lambda name, resume: True).leave


def fingerprinting() -> Callable[[], None]:
    """As a proof's process does."""
    unseen("syncscan.proof")
    fingerprint = importlib.import_module("syncscan.proof.fingerprint")
    return cast("Callable[[], None]", fingerprint.Fingerprinting(rounded=True).leave)


def delaying() -> Callable[[], None]:
    """As the process of a trial does."""
    return cast("Callable[[], None]", importlib.import_module("syncscan.proof.trial_process").delay_copies())


PUTTING: dict[str, Callable[[], Callable[[], None]] | str] = {
    "capture/optimizer_hook.py": lambda: OptimizerHook(lambda *step: None).remove,
    "capture/torch_hooks.py": lambda: both(
        started(ModuleCalls(network, lambda: None, lambda output: None)), torch_hooks.in_child(lambda: None)
    ),
    "capture/repeated_loop.py": monitoring,
    "capture/stack_timer.py": lambda: started(Ticks(997)),
    "capture/cycle_recorder.py": lambda: opened(Garbage()),
    "capture/sync_lines.py": lambda: both(called_back(), recording()),
    "capture/script_capture.py": watching_scopes,
    "patches.py": lambda: when_imported("a_module_of_nobody", lambda module: None),
    "proof/fingerprint.py": fingerprinting,
    "proof/trial_process.py": delaying,
    "capture/signals.py": terminating,
    "guarding/dispatch.py": guarding,
    "guarding/blocking_copies.py": guarding,
    # The rest puts nothing into a program that compiles.
    "capture/captured_command.py": "signals of the process that waits for the program's",
    "capture/thread_usage.py": "a thread of its own looks at frames",
    "watching/watch.py": "a thread of its own looks at frames",
    "watching/sampler.py": "a thread of its own looks at frames",
    "watching/single_capture.py": "a thread of its own looks at frames",
}
"""Files that put something into a program's process → what opens it and returns what closes it, or why it is none."""
PUT = {file: put for file, put in PUTTING.items() if (SOURCES / file).is_file()}
"""Those that are there: a room may have been taken away."""


@pytest.fixture(autouse=True)
def fresh(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    before = signal.getsignal(signal.SIGURG)
    dynamo.reset()
    dynamo.utils.counters.clear()
    yield
    dynamo.reset()
    dynamo.utils.counters.clear()
    signal.signal(signal.SIGURG, before)


OPENED = [file for file, put in PUT.items() if not isinstance(put, str)]
ONCE = {id(put): file for file, put in reversed(PUT.items()) if not isinstance(put, str)}
"""A file of those that are put in together."""


QUICK = ("capture/optimizer_hook.py",)
"""The hook that each capture puts in."""


@pytest.mark.parametrize(
    "file", [pytest.param(file, marks=[pytest.mark.slow] * (file not in QUICK)) for file in ONCE.values()]
)
def test_what_is_put_in_changes_no_graph(file: str) -> None:
    """Graphs, breaks and compilations are equal, whether it comes before or after the program compiles, and goes."""
    put = PUT[file]
    assert not isinstance(put, str)
    for program in PROGRAMS:
        dynamo.reset()
        dynamo.utils.counters.clear()
        alone, under = Made(), Made()
        first = program(alone.backend)
        result = str(first())
        graphs, breaks = list(alone.graphs), alone.breaks
        close = put()
        try:
            if not (program is others_optimizer and file == "capture/optimizer_hook.py"):  # see recording.md
                first()
            dynamo.utils.counters.clear()
            second = program(under.backend)
            assert str(second()) == result or program is broken  # whose network is another one
        finally:
            close()
        assert (under.graphs, under.breaks) == (graphs, breaks), program.__name__
        second()
        assert (alone.graphs, under.graphs) == (graphs, graphs), program.__name__


def test_everything_that_is_put_in_is_listed() -> None:
    """A file that puts something else into a process needs an entry, and with it a proof."""
    files = {
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*.py")
        if file.relative_to(SOURCES).parts[0] not in ELSEWHERE and PUTS.search(file.read_text())
    }
    assert files == set(PUT)


def test_the_page_lists_what_is_put_in() -> None:
    """With why torch's compilers pass through it."""
    page = (SOURCES.parent / "docs/explanation/recording.md").read_text()
    listed = set(re.findall(r"^\| `([\w/]+\.py)`", page, re.MULTILINE))
    assert {file for file in listed if (SOURCES / file).is_file()} == set(OPENED)


def test_hooks_of_the_program_end_the_counting_of_calls() -> None:
    """Dynamo traces a call with hooks: it never finds ours there, as we leave when it begins."""
    model, counted = Network(), []
    calls = ModuleCalls(model, lambda: counted.append(1))
    assert calls.start()
    model(x)
    model.register_forward_pre_hook(lambda module, arguments: None)
    backend = Made()
    compiled = torch.compile(lambda y: model(y) + 1, backend=backend.backend, fullgraph=True)
    compiled(x)
    assert (len(counted), len(backend.graphs), ModuleCalls(model, list).start()) == (1, 1, False)
    calls.close()


def test_calls_of_a_compiled_module_are_counted() -> None:
    """Both the module that `torch.compile` returned and the one inside of it."""
    model, counted = Network(), []
    backend = Made()
    compiled = torch.compile(model, backend=backend.backend, fullgraph=True)
    compiled(x)
    for module in (model, compiled):
        calls = ModuleCalls(module, lambda: counted.append(1))
        assert calls.start()
        compiled(x)
        calls.close()
    compiled(x)
    assert (len(counted), len(backend.graphs)) == (2, 1)


@pytest.mark.parametrize("kind", [torch.nn.Linear, torch.nn.LSTM], ids=["Linear", "LSTM"])
def test_a_module_is_saved_and_copied_without_what_is_put_in(kind: Any) -> None:
    """One whose class chooses by itself what a file holds is left alone."""
    module, seen = kind(4, 4), Counter[str]()
    calls = ModuleCalls(module, lambda: seen.update(["call"]), lambda output: None)
    started = calls.start()
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        copied(torch.rand(2, 4))
    assert not seen
    module(torch.rand(2, 4))
    assert seen["call"] == int(started)
    calls.close()


torch = pytest.importorskip("torch")


def test_own_and_inherited_names_are_put_back() -> None:
    """And what this torch doesn't have, or lets nobody change, is passed over."""
    places = [("torch.Tensor", "coalesce"), ("torch._C", "_cuda_emptyCache"), ("torch", "no_such_name")]
    places += [("torch.no.such.place", "name"), ("torch.Size", "numel")]
    before = (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), torch.Size.numel)
    undo = replaced((path, name, lambda original: lambda *a: original(*a)) for path, name in places)
    assert "coalesce" in vars(torch.Tensor)
    undo()
    assert (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), torch.Size.numel) == before
