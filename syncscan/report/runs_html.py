"""Render a folder's recordings as one HTML page: step time, waits and findings over time, a link to each report.

The page runs no script: its Content-Security-Policy allows none, and no style but its own, by hash. jinja2 escapes
every value.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from syncscan.model.analysis import Analysis
from syncscan.report.assets import asset, template
from syncscan.report.shown_names import shown
from syncscan.report.story import story_of
from syncscan.report.units import duration, percent
from syncscan.version import __version__

WIDTH, HEIGHT = 900, 180
"""Size of the trend between its margins, in drawing units."""
_WIDEST = 60.0
"""Widest bar of the trend."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One recording of a folder; times in µs per step, None where the trace can't tell them."""

    name: str
    """Its file's name."""
    written: datetime
    """When its file was last changed."""
    link: str
    """Address of its report, relative to the page."""
    device: str
    verdict: str
    step_us: float | None
    wait_us: float | None
    gain_us: float | None
    """Projected gain of removing all syncs."""
    findings: int


def run_line(analysis: Analysis, name: str, written: datetime, link: str) -> RunRow:
    """Return the line of a recording.

    Args:
        analysis: the analysis of the recording.
        name: name of its file.
        written: when the file was last changed.
        link: address of its report, relative to the page.
    """
    step, story = analysis.step, story_of(analysis)
    return RunRow(
        name=name,
        written=written,
        link=link,
        device=", ".join(sorted({name for name in analysis.trace.info.devices if name})),
        verdict=story.verdict,
        step_us=step.observed_us or None,
        wait_us=None if step.waits_withheld or not step.observed_us else step.wait_us,
        gain_us=step.recoverable_us,
        findings=len(analysis.findings),
    )


def render(folder: str, lines: Sequence[RunRow], unread: Sequence[tuple[str, str]] = (), left_out: int = 0) -> str:
    """Return the page.

    Args:
        folder: the folder's name.
        lines: its recordings, oldest first.
        unread: files that can't be analyzed, by name and reason.
        left_out: number of older recordings that the page doesn't list.
    """
    return template("runs.html.j2").render(
        version=__version__,
        style=asset("page.css") + asset("runs.css"),
        folder=shown(folder, 200),
        heading=_heading(lines),
        trend=_trend([line for line in lines if line.step_us]),
        rows=[_row(line) for line in reversed(lines)],
        unread=[(shown(name, 200), shown(reason, 400)) for name, reason in unread],
        left_out=left_out,
        width=WIDTH,
        height=HEIGHT,
    )


def _heading(lines: Sequence[RunRow]) -> str:
    """Return how the newest step compares with the oldest."""
    many = "1 recording" if len(lines) == 1 else f"{len(lines)} recordings"
    timed = [line.step_us for line in lines if line.step_us]
    if len(timed) < 2:
        return many
    change = timed[-1] / timed[0] - 1
    how = f"{percent(abs(change), 1)} {'longer' if change > 0 else 'shorter'} than" if abs(change) >= 0.005 else "like"
    return f"{many}: the newest step, {duration(timed[-1])}, is {how} the oldest, {duration(timed[0])}"


def _row(line: RunRow) -> dict[str, Any]:
    return {
        "name": shown(line.name, 200),
        "written": f"{line.written:%Y-%m-%d %H:%M}",
        "link": line.link,
        "device": shown(line.device, 80),
        "verdict": shown(line.verdict, 200),
        "step": _time(line.step_us),
        "wait": _time(line.wait_us),
        "gain": _time(line.gain_us),
        "findings": line.findings,
    }


def _time(us: float | None) -> str:
    return "–" if us is None else duration(us)


def _trend(lines: Sequence[RunRow]) -> dict[str, Any] | None:
    """Return the bars of the trend, oldest first: the step, in it the host's waits, beside it what syncs cost."""
    if len(lines) < 2:
        return None
    longest = max(line.step_us or 0.0 for line in lines)
    apart = min(_WIDEST * 2, WIDTH / len(lines))
    return {
        "bar": round(apart * 0.6, 2),
        "bars": [
            {
                "x": round(number * apart + apart * 0.2, 2),
                "link": line.link,
                "step": _height(line.step_us, longest),
                "wait": _height(line.wait_us, longest),
                "gain": _height(line.gain_us, longest),
                "text": f"{shown(line.name, 120)}: step {_time(line.step_us)}, waits {_time(line.wait_us)}, "
                f"without syncs {_time(line.gain_us)} less",
            }
            for number, line in enumerate(lines)
        ],
        "longest": duration(longest),
    }


def _height(us: float | None, longest: float) -> float:
    return round(min(us or 0.0, longest) / longest * HEIGHT, 2)
