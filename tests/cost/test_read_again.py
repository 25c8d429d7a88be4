"""A value that is read again and again in a step is to be read once, and findings say so."""

from __future__ import annotations

import re
from typing import Any

import pytest

from syncscan import pretend_gpu
from syncscan.api import analyze_trace
from syncscan.model.duration import duration
from syncscan.model.finding import Finding
from tests.builder import TraceBuilder

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
    assert finding.diagnosis.title.endswith(
        "waits for a number, 27 times at one line: read it once if the value is the same"
    )
    assert finding.diagnosis.fix.startswith("If it is the same value each time")
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
    assert "once" not in finding.diagnosis.title


def dry(read: Any, steps: int = 2, reads: int = 9) -> Finding:
    """Return the findings of a dry run of steps that read so many times at one line."""
    import torch

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
    assert analysis.diagnosis.title == "9 reads of the same value: read it once"
    assert analysis.diagnosis.fix.startswith("Read it once, before the loop or the layers")
    assert dry(lambda torch, lengths, layer: lengths.tolist()).diagnosis.title == analysis.diagnosis.title
    assert dry(lambda torch, lengths, layer: lengths.cpu()).diagnosis.title == analysis.diagnosis.title


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
    assert "same value" not in dry(read).diagnosis.title


def test_what_one_read_left_saves_is_reported_beside_the_gain_of_all() -> None:
    """The gain is of removing all of them; to read once leaves the wait for the first."""
    finding = layers(8)
    assert finding.gain is not None
    first, *_ = finding.diagnosis.fix.split(". ")
    all_of_them = duration(finding.gain.recoverable_us)
    assert finding.diagnosis.once
    assert re.search(rf"pass it on: then .*s of the {all_of_them} are saved$", first)
