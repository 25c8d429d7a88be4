"""Sync points are merged to findings, and findings that read one value again are named."""

from __future__ import annotations

from typing import Any

import pytest

from syncscan.api import analyze_trace
from syncscan.model.finding import Finding, Severity
from tests.builder import TraceBuilder


def findings(t: TraceBuilder) -> tuple[Finding, ...]:
    return analyze_trace(t.trace()).findings


def run(first_step: int = 2, shift: float = 0, tid: str = "0x7f01", epoch: int = 1) -> TraceBuilder:
    """Run one program again: with other step numbers, times, addresses and epoch."""
    t = TraceBuilder(base_ns=epoch * 10**18)
    for k in range(3):
        at = k * 1000 + shift
        with t.step(at, at + 1000, number=first_step + k), t.frame("train.py(10): step", at + 1, at + 900):
            t.frame(f"<built-in method item of Tensor object at {tid}>", at + 15, at + 500)
            with t.scope("log", at + 10, at + 600):
                t.sync("aten::item", at=at + 20, wait=300)
    return t


def test_steps_are_one_finding():
    """One place in three steps is one finding with three occurrences, one per step."""
    (f,) = findings(run())
    assert (f.count, f.per_step, len(f.occurrences)) == (3, 1.0, 3)
    assert f.wait_us == 300


def test_the_id_is_stable_across_runs():
    """Step numbers, times and addresses don't change it."""
    ids = {f.id for t in (run(), run(40, 12.5, "0x7faa", 2)) for f in findings(t)}
    assert len(ids) == 1
    (id,) = ids
    assert id.startswith(findings(run())[0].rule)


@pytest.mark.parametrize("change", ["scope", "op", "line", "optimizer"])
def test_what_makes_a_finding_of_its_own(change: str):
    """Another scope, op or line, or an optimizer's step around it, is another finding."""
    t = TraceBuilder()
    with t.step(0, 5000):
        for k, at in enumerate((0, 1000)):
            other = k == 1
            line = 99 if change == "line" and other else 10
            t.frame(f"train.py({line}): step", at + 1, at + 900)
            if change == "optimizer" and other:
                t.scope("Optimizer.step#SGD.step", at + 2, at + 800)
            with t.scope("b" if change == "scope" and other else "a", at + 10, at + 600):
                t.sync("aten::nonzero" if change == "op" and other else "aten::item", at=at + 20, wait=300)
    matches = findings(t)
    assert len(matches) == 2
    assert len({f.id for f in matches}) == 2


def test_a_line_in_the_forward_passes_of_two_batches_is_one_finding():
    """Where gradients accumulate, the second batch's forward pass lies behind the first one's backward pass."""
    t = TraceBuilder()
    with t.step(0, 5000):
        for at in (0, 1000):
            with t.frame("train.py(10): step", at + 1, at + 900):
                t.sync("aten::item", at=at + 20, wait=300)
            with t.thread("pt_autograd_0"), t.backward("MulBackward0", at + 950, at + 960):
                t.launch(at=at + 951, lasts=1)
    (f,) = findings(t)
    assert f.count == 2


def test_one_line_of_the_program_is_as_many_findings_as_it_has_lines_in_a_library():
    """`solve(…)` reads its tolerance in one place and its step in another: each has a fix of its own."""
    t = TraceBuilder()
    with t.step(0, 5000), t.frame("train.py(10): step", 1, 4900):
        for line, at in ((30, 100), (40, 1100), (40, 2100)):
            with t.frame(f"torchdiffeq/_impl/rk_common.py({line}): _step", at, at + 600):
                t.sync("aten::item", at=at + 20, wait=300)
    assert sorted((f.source.line, f.in_library.line, f.count) for f in findings(t)) == [
        (10, 30, 1),
        (10, 40, 2),
    ]
    assert len({f.id for f in findings(t)}) == 2


def test_an_id_does_not_report_where_an_environment_lies():
    """One library in two environments gives one finding."""

    def ids(site: str) -> set[str]:
        t = TraceBuilder()
        library = f"{site}timm/utils/agc.py(30): clip"
        with t.step(0, 2000), t.frame("train.py(10): step", 1, 1900), t.frame(library, 2, 1800):
            t.sync("aten::item", at=20, wait=300)
        return {f.id for f in findings(t)}

    assert ids("") == ids("/venv/lib/python3.12/site-packages/") == ids("/other/lib/python3.10/site-packages/")


def test_several_a_step_are_counted():
    """A loop of four read-backs is one finding, four times per step, its wait summed over the step."""
    t = TraceBuilder()
    for at in t.steps(2, lasts=1000):
        for k in range(4):
            t.sync("aten::item", at=at + 10 + 200 * k, wait=100)
    (f,) = findings(t)
    assert (f.count, f.per_step, f.wait_us) == (8, 4.0, 400)


def test_severity_is_low_for_a_sync_that_happens_not_to_wait():
    """It can wait in another run, so it is reported, but costs nothing here."""
    t = TraceBuilder()
    for at in t.steps(3, lasts=100_000):
        t.sync("aten::item", at=at + 100)
        t.launch(at=at + 200, lasts=99_000)
    (f,) = findings(t)
    assert f.severity is Severity.LOW


def test_severity_is_high_where_the_device_runs_dry():
    """A third of the step lost behind a sync is high, and the worst comes first."""
    t = TraceBuilder()
    for at in t.steps(4, lasts=1000):
        t.launch(at=at + 1, lasts=400)
        with t.scope("bad", at + 4, at + 450):
            end = t.sync("aten::nonzero", at=at + 5)
        t.launch(at=end + 350, lasts=100)
        with t.scope("harmless", end + 351, at + 990):
            t.launch(at=end + 352, lasts=100)
    (f,) = findings(t)
    assert f.severity is Severity.HIGH


def test_intended_waits_are_info_and_last():
    """A sync before the first step is none of the step's, however long it waits."""
    t = TraceBuilder()
    t.sync("aten::item", at=0, wait=400)
    for at in t.steps(3, lasts=1000, start=500):
        t.sync("aten::nonzero", at=at + 20, wait=10)
    matches = findings(t)
    assert [f.severity is Severity.INFO for f in matches] == [False, True]
    assert matches[1].wait_us > matches[0].wait_us


def test_the_longest_wait_stands_for_the_finding():
    """Its call and place are those of the worst occurrence."""
    t = TraceBuilder()
    for at, wait in ((0, 10), (1000, 700)):
        with t.step(at, at + 1000):
            t.sync("aten::item", at=at + 20, wait=wait)
    (f,) = findings(t)
    assert f.costliest.where.step == 3


def test_the_id_is_the_same_wherever_the_program_lies():
    """Capture records absolute paths; the id takes them from the program's own root."""

    def found_in(home: str) -> Finding:
        t = TraceBuilder()
        for at in t.steps(2, lasts=1000):
            t.exact(at + 21, (f"{home}/lib/loss.py", 7, "masked"), (f"{home}/train.py", 40, "<module>"))
            t.sync("aten::item", at=at + 20, wait=300)
        (f,) = findings(t)
        return f

    at_home, on_scratch = found_in("/home/a/project"), found_in("/scratch/job 7")
    assert at_home.source != on_scratch.source
    assert at_home.path == on_scratch.path == "lib/loss.py"
    assert at_home.id == on_scratch.id


ITEM = "aten::item > aten::_local_scalar_dense"


def layers(reads: int, *, frames: bool = True, before: str = "aten::max", uneven: bool = False) -> Finding:
    """Return the findings of two steps that read a number in each of so many layers, at one line."""
    t = TraceBuilder(with_stack=1)
    for number, start in enumerate(t.steps(2, lasts=20_000)):
        if frames:
            t.frame("model.py(12): max_seqlen", start + 1, start + 19_000)
        at = start + 10
        for _ in range(reads - (uneven and number)):
            t.launch("layer", at=at, lasts=100)
            t.op(before, at + 3, at + 4)
            at = t.sync(ITEM, at=at + 10) + 5
    (finding,) = analyze_trace(t.trace()).findings
    return finding


def test_a_line_that_reads_in_each_layer_may_read_one_value() -> None:
    """A trace doesn't hold the value: it is said with an if."""
    finding = layers(27)
    assert finding.title.endswith("waits for a number, 27 times at one line: read it once if the value is the same")
    assert finding.fix.startswith("If it is the same value each time")
    assert finding.id == layers(2).id


@pytest.mark.parametrize(
    "finding",
    [
        layers(3),
        layers(27, frames=False),
        layers(27, before="aten::select"),
        layers(27, before="aten::multinomial"),
        layers(27, uneven=True),
    ],
    ids=["few", "no line", "one element each", "a choice each", "not in each step as many"],
)
def test_what_reads_other_values_is_not_reported(finding: Finding) -> None:
    """Or what may well do so."""
    assert "once" not in finding.title


def dry(read: Any, steps: int = 2, reads: int = 9) -> Finding:
    """Return the findings of a dry run of steps that read so many times at one line."""
    import torch

    pretend_gpu = pytest.importorskip("syncscan.dryrun.pretend").pretend_gpu

    def step(number: int) -> None:
        lengths = torch.tensor([3, 5 + number, 4], device="cuda")
        for layer in range(reads):
            read(torch, lengths, layer)

    with pretend_gpu() as run:
        for number in range(steps):
            step(number)
            run.step()
    return max(run.analysis.findings, key=lambda f: f.count)


def test_a_dry_run_knows_the_values() -> None:
    """They are equal, and not what many different things come to."""
    analysis = dry(lambda torch, lengths, layer: lengths.max().item())
    assert analysis.title == "9 reads of the same value: read it once"
    assert analysis.fix.startswith("Read it once, before the loop or the layers")
    assert dry(lambda torch, lengths, layer: lengths.tolist()).title == analysis.title
    assert dry(lambda torch, lengths, layer: lengths.cpu()).title == analysis.title


@pytest.mark.parametrize(
    "read",
    [
        lambda torch, lengths, layer: (lengths.max() + layer).item(),
        lambda torch, lengths, layer: (lengths.max() > 2).item(),
        lambda torch, lengths, layer: (lengths.max() * 0).item(),
        lambda torch, lengths, layer: (lengths + layer // 2).tolist(),
    ],
    ids=["other numbers", "flags", "zeros", "two of each list"],
)
def test_other_values_are_not_the_same(read: Any) -> None:
    """Equal flags and zeros prove nothing."""
    assert "same value" not in dry(read).title
