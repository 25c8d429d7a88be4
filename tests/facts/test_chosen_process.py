"""Several programs in one file, as merged ranks: each is told apart, and comes out as if it had been recorded alone."""

from __future__ import annotations

from typing import Any

import pytest

from syncscan.api import analyze_trace
from syncscan.errors import UsageError
from syncscan.facts.chosen_process import of_process, processes, share_correlations
from syncscan.model.step import Bound
from syncscan.model.trace import Trace
from tests.builder import MAIN, TraceBuilder, names
from tests.load import reference


def rank(device: int, wait: bool) -> TraceBuilder:
    """Three steps of 1000 µs with a kernel of 400 each; one rank reads its result back, the other doesn't."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        with t.scope("forward", start + 1, start + 900):
            t.launch(f"kernel {device}", at=start + 10, lasts=400, device=device)
            if wait:
                t.sync("aten::item", at=start + 20, device=device)
            t.frame("train.py(12): step", start + 800, start + 850)
    return t


def moved(t: TraceBuilder, correlation: int = 5000) -> list[dict[str, Any]]:
    """The events of this trace as another process would have written them."""
    matches = []
    for event in t.events:
        args = dict(event.get("args", {}))
        if "correlation" in args:
            args["correlation"] += correlation
        pid = event["pid"] + 1000 if event["pid"] == MAIN else event["pid"]
        matches.append({**event, "pid": pid, "args": args})
    return matches


def merged(correlation: int = 5000) -> Trace:
    """Both ranks in one file: the first waits on device 0, the second, pid 1100, works on device 1."""
    t = rank(0, wait=True)
    t.events += moved(rank(1, wait=False), correlation)
    return t.trace()


def test_each_program_is_what_it_would_be_alone() -> None:
    """Its slices, its device work, its frames, its steps, and everything that follows from them."""
    alone = rank(0, wait=True).trace()
    result = of_process(merged(), "100")
    rows = range(len(result.slices))
    assert names(result, rows) == names(alone, range(len(alone.slices)))
    assert [result.ancestors(r) for r in rows] == [alone.ancestors(r) for r in rows]
    assert [names(result, [s.row]) for s in result.steps] == [names(alone, [s.row]) for s in alone.steps]
    assert len(result.frames) == len(alone.frames)
    one, other = analyze_trace(merged()), analyze_trace(alone)
    assert (one.step.bound, one.step.recoverable_us) == (other.step.bound, other.step.recoverable_us)
    assert [f.recoverable_us for f in one.findings] == [f.recoverable_us for f in other.findings]


def test_the_report_says_whose_it_is_and_which_others_there_are() -> None:
    """By their pids, which `--process` takes."""
    analysis = analyze_trace(merged())
    (sentence,) = analysis.integrity.sentences()
    assert "2 processes: this report covers process 100 only (--process PID chooses another: 1100)" in sentence
    assert analysis.step.processes == ("100", "1100")


def test_another_process_can_be_chosen() -> None:
    """It has no sync, so none is said of it; a pid that isn't there is a usage error."""
    analysis = analyze_trace(merged(), process="1100")
    assert (len(analysis.findings), analysis.step.bound) == (0, Bound.HOST)
    with pytest.raises(UsageError, match="no process 7"):
        analyze_trace(merged(), process="7")


def test_one_number_for_two_launches_withholds_everything() -> None:
    """Whose work is whose can't be told then."""
    assert not share_correlations(merged())
    trace = merged(correlation=0)
    assert share_correlations(trace)
    assert not analyze_trace(trace).integrity.waits


def test_one_number_for_two_launches_says_nothing_about_clocks() -> None:
    """Work that belongs to the other process ends after this process's waits: the clocks agree all the same."""
    t, second = rank(0, wait=True), rank(1, wait=True)
    for event in second.events:
        event["ts"] += 33
    t.events += moved(second, correlation=0)
    sentences = " ".join(analyze_trace(t.trace()).integrity.sentences())
    assert ("share launch numbers" in sentences, "clocks" in sentences) == (True, False)


def test_a_drivers_queues_are_no_program() -> None:
    """Some traces have calls on a pid of the device's own; they launch nothing."""
    t = rank(0, wait=True)
    call = {"ph": "X", "cat": "cuda_runtime", "name": "synchronize", "pid": 17, "tid": 1, "ts": 5, "dur": 3, "args": {}}
    t.event(**call)
    assert processes(t.trace()) == ("100",)


def test_work_of_no_launch_goes_with_its_device() -> None:
    """To the process that launched the rest on it."""
    t = rank(0, wait=True)
    t.events += moved(rank(1, wait=False))
    args = {"device": 1, "stream": 7}
    t.event(ph="X", cat="kernel", name="lost", pid=1, tid=7, ts=900, dur=5, args=args)
    result = of_process(reference.parse(t.json(), "t.json"), "1100")
    assert "lost" in names(result, range(len(result.slices)))


def test_of_many_processes_the_first_are_named() -> None:
    """Pids that aren't named are counted."""
    t = rank(0, wait=True)
    for number in range(1, 12):
        t.events += [{**event, "pid": event["pid"] + 999 * number} for event in moved(rank(number, wait=False))]
    analysis = analyze_trace(t.trace())
    assert (len(analysis.step.processes), "12 processes" in analysis.integrity.lacks[0].sentence) == (12, True)
    assert analysis.integrity.lacks[0].sentence.endswith(" and 3 more).")
