"""The terminal report says what a reader needs first, and says it safely."""

from __future__ import annotations

from msgspec.structs import replace

from syncscan.api import analyze_trace
from syncscan.model.finding import Excerpt
from syncscan.report import phrases, render, units
from tests.builder import TraceBuilder
from tests.networks import launch_bound
from tests.report.example import analysis, finding


def report(t: TraceBuilder, **options: int) -> str:
    return render(analyze_trace(t.trace()), "text", **options)


def test_a_step_without_syncs_says_so() -> None:
    """No findings: the report says it, and shows no table."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.launch("gemm", at=start + 5, lasts=90)
    lines = report(t).splitlines()
    assert "No sync was found." in lines
    assert not any("severity" in line for line in lines)


def test_verbose_shows_the_chain_and_the_fix() -> None:
    """`-v` shows of each finding the chain of ops down to the runtime call, why it waits and what to do."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        t.sync("aten::item", at=start + 20, wait=500)
    shown = report(t, verbose=1)
    assert "aten::item > cudaStreamSynchronize" in shown
    for heading in ("why", "fix", "fine", "measured"):
        assert f" {heading} " in shown


def test_verbose_shows_the_lines_around_a_sync() -> None:
    """With their numbers, the flagged one marked."""
    excerpt = Excerpt(path="/home/me/train.py", first=41, lines=("a", "b"), marked=(42,), newer=False)
    shown = render(analysis(replace(finding(), excerpt=excerpt)), "text", verbose=True)
    assert "> 42 | b" in shown
    assert "41 | a" in shown


def test_width_is_kept() -> None:
    """No line is longer than the terminal is wide, whatever names the trace holds."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("x" * 5000, start + 1, start + 900):
            t.sync("aten::" + "y" * 300, at=start + 20, wait=500)
    assert max(map(len, report(t, width=80, verbose=1).splitlines())) <= 80


def test_durations_have_three_digits() -> None:
    """A time is shown with three significant digits in the unit that fits."""
    shown = [units.duration(us) for us in (0.0, 0.4512, 6.26, 25.84, 254_315.0, 1_034_000.0)]
    assert shown == ["0 µs", "0.45 µs", "6.26 µs", "25.8 µs", "254 ms", "1.03 s"]


def test_phases_stand_in_a_table() -> None:
    """A served trace lists each phase with its steps and time, and whose ranges the steps are."""
    t = TraceBuilder()
    for k, name in enumerate(("step[EXTEND bs=1 toks=9]", *["step[DECODE bs=1]"] * 3)):
        with t.scope(name, 1000 * k, 1000 * k + 1000):
            t.launch(at=1000 * k + 5, lasts=90)
    lines = [line.split() for line in report(t, verbose=1).splitlines()]
    assert ["prefill", "1", "1", "1.00", "ms"] in lines
    assert ["decode", "1", "3", "1.00", "ms"] in lines
    assert "4 steps found (ranges named as SGLang names its steps)." in report(t, verbose=1)


def test_a_repeated_interval_is_called_an_estimate() -> None:
    """Whoever reads a time per step has to know what a step is."""
    t = TraceBuilder()
    for k in range(4):
        t.launch("gemm", at=100 * k, lasts=90)
    shown = " ".join(report(t, verbose=1).split())
    assert "the shortest repeating sequence (1 call) counts as a step, 4 times" in shown


def test_what_was_launched_before_is_distinguished() -> None:
    """The device works off 5 ms when a step of 1 ms begins, and is done 5.1 ms behind it."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="before", pid=0, tid=7, ts=0, dur=5000, args={"device": 0, "stream": 7})
    with t.step(0, 1000):
        t.launch("gemm", at=5, lasts=1100, begins=5000)
    shown = " ".join(report(t, verbose=1).split())
    assert "the device has a backlog of 5.00 ms" in shown
    assert "After the last step, the device needs 5.10 ms more to finish the work of the steps." in shown


def test_a_queue_that_is_as_long_at_both_ends_is_not_mentioned() -> None:
    """A host that is 5 ms ahead all the time: nothing of it changes what a step takes."""
    t = TraceBuilder()
    t.event(ph="X", cat="kernel", name="before", pid=0, tid=7, ts=0, dur=5000, args={"device": 0, "stream": 7})
    for start in t.steps(3, lasts=1000):
        t.launch("gemm", at=start + 5, lasts=1000, begins=5000)
    assert "launched" not in report(t, verbose=1)


def test_what_cannot_be_measured_is_called_so() -> None:
    """Less than 1 % of a step, and no range that means nothing."""
    step = 10_000.0
    assert [phrases.saving(us, step) for us in (0.0, 99.0, 100.0)] == ["less than 1%", "less than 1%", "100 µs"]
    assert phrases.spread((0.0, 50.0), step) == "less than 1%"
    assert phrases.spread((0.0, 571.0), step) == "0 to 570 µs"
    assert phrases.spread((951.0, 3280.0), step) == "0.9 to 3.3 ms"


def test_a_command_fits_on_a_line() -> None:
    """So that it can be pasted: where a path is too long, a command without it is next."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=100):
        t.launch("gemm", at=start + 5, lasts=90)
    outcome = analyze_trace(t.trace())
    assert "Next   syncscan report built.pt.trace.json -o report.html" in render(outcome, "text", width=80)
    info = replace(outcome.trace.info, path="/data/" + "long/" * 30 + "a trace.json")
    long = render(replace(outcome, trace=replace(outcome.trace, info=info)), "text", width=80)
    assert "Next   syncscan explain\n" in long


def test_syncs_that_keep_a_network_from_being_compiled_are_one_change_with_the_compile() -> None:
    """Either alone gains little, which stands below it."""
    shown = render(launch_bound(reads=10), "text", width=80)
    assert 'torch.compile(model, mode="reduce-overhead").' in shown
    assert "compiled alone: " in shown
