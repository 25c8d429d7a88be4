"""Graph breaks, skipped frames and recompiles come from dynamo with their lines and reasons."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from syncscan.capture.compiling import NO_BREAKS, NO_METRICS, _in_short, _last_line, compile_record
from syncscan.model.states import CompileEvent, CompileKind, CompileRecord

torch = pytest.importorskip("torch")
dynamo = pytest.importorskip("torch._dynamo")

ONES = torch.ones(4)


def read_back(x: Any) -> Any:
    n = (x * 2).sum().item()
    return x + n


def in_a_loop(x: Any) -> Any:
    for _ in range(2):
        x = x + x.sum().item()
    return x


def calls_it(x: Any) -> Any:
    return read_back(x) * 2


def whole(x: Any) -> Any:
    return x + 1


def forget() -> None:
    """Begin anew, as a process does."""
    dynamo.reset()
    dynamo.utils.clear_compilation_metrics()
    dynamo.utils.graph_break_reasons.clear()
    dynamo.utils.counters.clear()


def metrics(monkeypatch: pytest.MonkeyPatch, **of: Any) -> None:
    """Have dynamo remember one compilation, of a function `f` at line 3 of m.py."""
    code = {"compile_id": "0/0", "co_name": "f", "co_filename": "m.py", "co_firstlineno": 3}
    forget()
    monkeypatch.setattr(
        dynamo.utils, "get_compilation_metrics", lambda: [dynamo.utils.CompilationMetrics(**code, **of)]
    )


@pytest.fixture
def heard() -> Iterator[Callable[..., CompileRecord]]:
    """Compiles a function for some arguments, and returns what was said."""
    forget()

    def compiled(function: Callable[..., Any], *arguments: Any) -> CompileRecord:
        built = torch.compile(function, backend="eager")
        for argument in arguments or (ONES,):
            built(argument)
        return compile_record()

    yield compiled
    forget()


def line(function: Callable[..., Any], holding: str) -> int:
    """The line of a function that holds a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, text in enumerate(lines) if holding in text)


def test_a_graph_break_has_its_line_and_reason(heard: Callable[..., CompileRecord]) -> None:
    """And both parts of the function are graphs."""
    record = heard(read_back)
    (event,) = record.events
    assert (event.kind, event.line, event.frame) == (CompileKind.BREAK, line(read_back, ".item()"), "read_back")
    assert event.file == __file__
    assert "item" in event.reason
    assert "\n" not in event.reason
    assert record.graphs == 2


def test_a_break_in_a_loop_leaves_its_frame_to_eager(heard: Callable[..., CompileRecord]) -> None:
    """With the line that was in the way, and the first and last of the function."""
    (event,) = heard(in_a_loop).events
    assert event.kind is CompileKind.SKIPPED
    assert event.line in (line(in_a_loop, ".item()"), line(in_a_loop, "def "))
    assert (event.frame, event.frame_line) == ("in_a_loop", line(in_a_loop, "def "))
    assert event.frame_last == line(in_a_loop, "return")


def test_a_break_in_an_inlined_function_names_both(heard: Callable[..., CompileRecord]) -> None:
    """The line is the inner function's, the frame that was to be compiled is the outer one."""
    events = heard(calls_it).events
    assert ("read_back", "calls_it") in [(event.function, event.frame) for event in events]
    assert {event.line for event in events} == {line(read_back, ".item()")}


def test_a_recompile_has_the_guard_that_failed(heard: Callable[..., CompileRecord]) -> None:
    """At the function's first line, as dynamo names no other."""
    (event,) = heard(whole, ONES, ONES.int()).events
    assert (event.kind, event.line, event.frame) == (CompileKind.RECOMPILED, line(whole, "def "), "whole")
    assert "dtype mismatch" in event.reason


def test_what_compiles_whole_has_nothing_to_say(heard: Callable[..., CompileRecord]) -> None:
    """One frame, one graph."""
    record = heard(whole)
    assert (record.frames, record.graphs, record.events, record.notes) == (1, 1, (), ())


def test_a_torch_without_these_names_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for the metrics, one for the list of breaks."""
    monkeypatch.delattr(dynamo.utils, "get_compilation_metrics")
    monkeypatch.delattr(dynamo.utils, "graph_break_reasons")
    monkeypatch.setitem(dynamo.utils.counters, "frames", {"total": 1})
    assert compile_record().notes == (NO_METRICS.format(torch.__version__), NO_BREAKS.format(torch.__version__))


def test_a_skipped_frame_without_a_recorded_failure_is_one_that_saw_ops_and_made_no_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So torch before 2.9 tells of a graph break in a loop: its metrics have no failure."""
    metrics(monkeypatch, graph_op_count=2, has_guarded_code=False)
    (event,) = compile_record().events
    assert (event.kind, event.file, event.line, event.frame) == (CompileKind.SKIPPED, "m.py", 3, "f")


def test_a_frame_without_the_cuda_graph_it_asked_for_has_inductors_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor's metrics name what it skips graphs for, with the user's stack below."""
    why = "skipping cudagraphs due to mutated inputs (1 instances). Found from : \n   File m.py, line 5"
    metrics(monkeypatch, cudagraph_skip_reason=why)
    (event,) = compile_record().events
    assert (event.kind, event.reason) == (CompileKind.NO_CUDA_GRAPH, "mutated inputs (1 instances)")
    assert (event.file, event.line, event.frame) == ("m.py", 3, "f")


def test_a_reason_is_its_headlines_and_the_first_hint() -> None:
    """Both are reported if one break follows another."""
    both = (
        "A\n  Explanation: why\n  Hint: do\n\n*** While handling this graph break, another … ***\n\nB\n  Explanation: y"
    )
    assert _in_short(both) == ("A; B", "do")
    assert _in_short("generic_jump TensorVariable()")[0].startswith("Data-dependent branching")


def test_the_last_line_of_no_function_is_unknown() -> None:
    """Nor is that of a file that isn't there."""
    assert _last_line("nowhere.py", 1) == -1
    assert _last_line(__file__, 1) == -1


def test_an_event_is_a_value() -> None:
    """Two that say the same are one, counted."""
    event = CompileEvent(kind=CompileKind.BREAK, reason="r", file="f", line=1, function="g", frame="g")
    assert (
        len({event, CompileEvent(kind=CompileKind.BREAK, reason="r", file="f", line=1, function="g", frame="g")}) == 1
    )
