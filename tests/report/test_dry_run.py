"""Reports of a dry run: how many places wait and how much was understood; nothing of costs that nobody measured."""

from __future__ import annotations

import re

import pytest

import syncscan
from syncscan import report
from syncscan.errors import UsageError
from syncscan.model.analysis import Analysis

torch = pytest.importorskip("torch")
COSTS = re.compile(r"by what it costs|saves|idle after|[0-9] (ms|µs)|can't be told|Withheld")


@pytest.fixture(scope="module")
def dry() -> Analysis:
    """Two places, one of them twice a step, and preparation."""
    with syncscan.pretend_gpu() as rec:
        x = torch.ones(4).to("cuda")
        for _ in range(2):
            rec.step()
            for _ in range(2):
                x.sum().item()
            x.tolist()
        rec.end_step()
    return rec.analysis


@pytest.mark.parametrize("form", ["text", "markdown", "html", "fragment"])
def test_no_report_speaks_of_costs(dry: Analysis, form: str) -> None:
    """The verdict counts places; the list is by how often; no time stands anywhere."""
    text = report.render(dry, form)
    words = " ".join(re.sub(r"<(style|script).*?</\\1>|<[^>]*>", " ", text, flags=re.DOTALL).split())
    assert "2 places would block the host, 3 times per step" in words
    if form in ("text", "markdown", "fragment"):
        assert not COSTS.search(words), COSTS.search(words)


@pytest.mark.parametrize("width", [80, 120])
def test_the_first_screen_fits(dry: Analysis, width: int) -> None:
    """No line is longer than the terminal, and each place that would block has its row."""
    lines = report.render(dry, "text", width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum(bool(re.match(r" \d\. ", line)) for line in lines) == 2


def test_each_place_has_its_row_with_how_often_it_waits(dry: Analysis) -> None:
    """Behind the first screen, where preparation comes last."""
    row = re.compile(r"^ *(\S+) · .*test_dry_run\.py:\d+ · .*· (.*)$", re.M)
    rows = row.findall(report.render(dry, "text", width=1000, verbose=True))
    assert rows == [
        ("item", "2 times per step"),
        ("tolist", "once per step"),
        ("to-device", "1 time outside of the steps"),
    ]


def test_a_place_of_the_steps_is_not_reported_again(dry: Analysis) -> None:
    """A wait of a first step before the marked ones belongs to the same place."""
    with syncscan.pretend_gpu() as rec:
        x = torch.ones(4, device="cuda")
        for step in range(3):
            if step:
                rec.step()
            x.sum().item()
    assert [(f.rule, f.count) for f in rec.findings] == [("item", 2)]


def test_nothing_found_is_no_clean_bill() -> None:
    """It says what ran, that nothing did, or that something wasn't understood."""

    def verdict(block: object) -> str:
        with syncscan.pretend_gpu() as rec:
            block()  # type: ignore[operator]
        return report.render(rec.analysis, "text").splitlines()[2].partition(".")[0]

    def launched() -> None:
        torch.ones(2, device="cuda").add(1)

    def replayed() -> None:
        launched()
        torch.cuda.CUDAGraph().replay()

    assert [verdict(block) for block in (launched, lambda: torch.ones(2).add(1), replayed)] == [
        "Nothing that ran would block the host",
        "Nothing ran on the simulated device",
        "No wait found among the recognized ops",
    ]


def test_a_program_that_uses_no_device_is_not_sent_round_in_a_circle() -> None:
    """`profile` sends it here, as there is no GPU: here it isn't sent back, but asked for its arguments."""
    with syncscan.pretend_gpu() as rec:
        torch.ones(2).add(1)
    text = report.render(rec.analysis, "text")
    assert "It put nothing on a GPU: give it the arguments with which it does." in text
    assert "Next   syncscan dryrun SCRIPT ARGUMENTS" in text


def test_no_picture_is_drawn_of_times_that_are_none(dry: Analysis) -> None:
    """There is a sentence instead."""
    with pytest.raises(UsageError, match="no step of this trace can be replayed"):
        dry.picture()
