"""`syncscan demo`: a step that gains by losing its wait, one that gains nothing, and what that means."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan.cli.output import colors, warn_briefly, width

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis

PACKAGE = Path(__file__).parent.parent
GAINS = PACKAGE / "demo" / "logged_loss.h200.pt.trace.json.gz"
"""A step that reads its loss before it makes the next batch, recorded on an H200."""
NOTHING = PACKAGE / "demo" / "masked_loss.h200.pt.trace.json.gz"
"""The masked loss of a segmentation network, likewise."""


@click.command("demo")
def command() -> None:
    """Show a step that gets faster without its wait, and one that waits far longer and gains nothing.

    The first reads its loss before it makes the next batch. The second has the masked loss of a segmentation network:
    nonzero, unique and a boolean mask. Both were recorded on an H200.
    """
    from syncscan import api

    _say(["1. A step that reads its loss before it creates the next batch, recorded on an NVIDIA H200:", ""])
    gains = api.analyze(GAINS)
    _show(gains)
    _say(["", "2. A step whose loss uses nonzero, unique and a mask, recorded on the same GPU:", ""])
    nothing = api.analyze(NOTHING)
    _show(nothing)
    _say(["", textwrap.fill(_conclusion(gains, nothing), width()), "Next: syncscan profile your_script.py"])


def _show(analysis: Analysis) -> None:
    from syncscan import report

    warn_briefly(analysis)
    click.echo(report.render(analysis, "text", width=width(), color=colors()), nl=False)


def _conclusion(gains: Analysis, nothing: Analysis) -> str:
    """Return a sentence with the numbers of both reports."""
    first, second = (_describe(analysis) for analysis in (gains, nothing))
    return (
        f"So the first step waits for {first[0]} of its time and would be {first[1]} shorter without its wait; the "
        f"second waits for {second[0]} and would be {second[1]} shorter. The length of a wait doesn't show its cost."
    )


def _describe(analysis: Analysis) -> tuple[str, str]:
    """Return the parts of a step spent waiting, and saved by the fix."""
    from syncscan.report.phrases import measurable, replayed, saving
    from syncscan.report.units import percent

    step = analysis.step
    us, whole = step.recoverable_us or 0.0, replayed(step)
    shorter = percent(us, whole) if measurable(us, whole) else saving(us, whole)
    return percent(step.wait_us, step.observed_us), shorter


def _say(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)
