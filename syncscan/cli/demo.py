"""`syncscan demo`: captures the masked-loss step on this machine, analyses it, and shows what it means."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncscan.cli.output import warn

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis

RECORDED = Path(__file__).parent.parent / "demo" / "masked_loss.h200.pt.trace.json.gz"
"""The same step, recorded on an H200: what a machine without a GPU can't show."""


@click.command("demo")
@click.option(
    "--out", default="syncscan-out", show_default=True, metavar="FOLDER", help="Where the captured trace goes."
)
def command(out: str) -> None:
    """Capture a training step whose loss waits for the device, analyse it, and say what to do.

    The step is the masked loss of a segmentation network: nonzero, unique and a boolean mask, each in its own scope. It
    runs on a GPU if there is one; without, the recording of the same step on an H200 is analysed too.
    """
    own = _capture(out)
    analysis = own if own and own.findings else _recorded()
    _say(_conclusion(analysis))


def _capture(out: str) -> Analysis | None:
    from syncscan import api
    from syncscan.errors import installing

    if importlib.util.find_spec("torch") is None:
        _say([f"PyTorch isn't installed, so nothing is captured here: {installing('capture')}", ""])
        return None
    from syncscan.capture import demo_step
    from syncscan.model.printable import printable

    _say(["1. Capturing the masked-loss step on this machine: wait 1, warmup 4, active 3 steps."])
    trace = demo_step.capture(out)
    _say([f"   Wrote {printable(str(trace))}", ""])
    analysis = api.analyze(trace)
    _show(analysis)
    return analysis


def _recorded() -> Analysis:
    from syncscan import api

    _say(["", "2. No GPU did the work above, so nothing waited. The same step, as recorded on an NVIDIA H200:", ""])
    analysis = api.analyze(RECORDED)
    _show(analysis)
    return analysis


def _show(analysis: Analysis) -> None:
    from syncscan.cli.terminal import colors, width
    from syncscan.report import text

    warn(analysis.warnings)
    click.echo(text.render(analysis, width=width(), color=colors()), nl=False)


def _conclusion(analysis: Analysis) -> list[str]:
    from syncscan.report.units import duration, percent

    real = [f for f in analysis.findings if f.severity.value != "info"]
    step = analysis.step
    scopes = ", ".join(dict.fromkeys(f.where.scope[-1] for f in real if f.where.scope))
    gain = step.recoverable_us or 0.0
    return [
        "",
        f"Found: {len(real)} places ({scopes}) where the host waits {duration(step.wait_us)}"
        f" of a {duration(step.observed_us)} step.",
        f"Cost: removing all of them would save {duration(gain)} ({percent(gain, step.observed_us)}): {step.reason}",
        "Next: syncscan profile your_script.py",
    ]


def _say(lines: list[str]) -> None:
    for line in lines:
        click.echo(line)
