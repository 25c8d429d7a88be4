"""Log an Analysis to TensorBoard while training: scalars and a table of findings beside the loss.

analysis = syncscan.analyze(trace)
syncscan.tensorboard.log(analysis, writer, step)   # writer: torch.utils.tensorboard.SummaryWriter
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from syncscan.report.markup import cell, escaped
from syncscan.report.phrases import places, real, waited
from syncscan.report.units import within

if TYPE_CHECKING:
    from syncscan.model.analysis import Analysis
    from syncscan.model.finding import Finding
    from syncscan.model.step import StepSummary


class Writer(Protocol):
    """Interface of a SummaryWriter, as in `torch.utils.tensorboard` and `tensorboardX`."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int | None = None) -> Any:
        """Add one point of a curve."""

    def add_text(self, tag: str, text_string: str, global_step: int | None = None) -> Any:
        """Add one Markdown text."""


def log(analysis: Analysis, writer: Writer, step: int | None = None) -> None:
    """Write the results of an analysis as curves and a table.

    Scalars, all µs a step but the counts: `syncscan/wait_us` and `syncscan/bubble_us` (measured),
    `syncscan/recoverable_us` (projected; left out where it couldn't be projected), `syncscan/step_us`,
    `syncscan/syncs_per_step` and `syncscan/findings`. Waits that are intended don't count. Text:
    `syncscan/findings`, a Markdown table.

    Args:
        analysis: the analysis of the trace of one profiler cycle.
        writer: has `add_scalar` and `add_text`.
        step: the training step to log at.
    """
    ours = real(analysis.findings)
    scalars: dict[str, float | None] = {
        "wait_us": None if analysis.step.waits_withheld else analysis.step.wait_us,
        "bubble_us": None if analysis.step.waits_withheld else analysis.step.bubble_us,
        "recoverable_us": analysis.step.recoverable_us,
        "step_us": analysis.step.observed_us,
        "syncs_per_step": sum(f.per_step for f in ours),
        "findings": len(ours),
    }
    for name, value in scalars.items():
        if value is not None:
            writer.add_scalar(f"syncscan/{name}", value, step)
    writer.add_text("syncscan/findings", table(analysis), step)


def table(analysis: Analysis) -> str:
    """Return the findings as a Markdown table, worst first; a sentence where there are none."""
    if not analysis.findings:
        return "No host-device syncs found."
    rows = [
        "| what | line | scope | saves *(projected)* | waits *(measured)* | idle after *(measured)* | instead |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    return "\n".join([*rows, *(_row(f, analysis.step) for f in analysis.findings)])


def _row(f: Finding, step: StepSummary) -> str:
    cells = (
        escaped(f.title),
        cell(places(f)),
        cell(" > ".join(f.scope)),
        "–" if f.recoverable_us is None else within(f.recoverable_us, f.recoverable_range_us),
        waited(f.wait_us),
        waited(f.bubble_us),
        escaped(f.fix),
    )
    return f"| {' | '.join(cells)} |"
