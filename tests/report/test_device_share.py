"""How much of a step the device is busy is one number with its basis, wherever it stands."""

from __future__ import annotations

import json
from pathlib import Path

from syncscan.facts.device_work import device_works
from syncscan.model.step import ShareBasis
from syncscan.report import kernels, render, terminal, whatif_report
from syncscan.report.front import front_of
from syncscan.report.units import duration
from tests.each import each
from tests.recordings import RECORDINGS, analyzed, large, name, rendered


@each("recording", RECORDINGS, name, large)
def test_headline_page_and_json_agree(recording: Path) -> None:
    """The recorded share beside recorded times; the share without the profiler only together with its basis."""
    analysis = analyzed(recording)
    step = analysis.step
    if not step.observed_us or not len(analysis.trace.device_rows):
        return
    recorded = f"{step.device_busy_us / step.observed_us:.0%}"
    document = json.loads(rendered(recording, "json"))["step"]
    assert f"{document['recorded_device_share']:.0%}" == recorded
    busy = step.recorded_device_share if step.device_share is None else step.device_share
    assert front_of(analysis).busy == min(1.0, busy)
    assert f"{recorded}, {duration(step.device_busy_us)} per step" in rendered(recording, "html")
    if step.device_share is None:
        return
    text = device_works(step)
    assert text.startswith(f"{recorded} of the step")
    assert text in step.reason
    assert f"device busy {min(1.0, busy):.0%}" in " ".join(render(analysis, "text", width=1000).split())


@each("recording", RECORDINGS, name, large)
def test_a_share_without_the_profiler_says_so(recording: Path) -> None:
    """Where it differs from the recorded one: "about" and "(estimated)" unless the step was timed without it."""
    analysis = analyzed(recording)
    step = analysis.step
    if step.device_share is None or abs(step.device_share - step.recorded_device_share) < 0.015:
        return
    estimated = step.device_share_basis is ShareBasis.ESTIMATED
    assert estimated == (step.unprofiled_us is None)
    about = f"about {step.device_share:.0%} without the profiler (estimated)"
    known = f", {step.device_share:.0%} without the profiler"
    assert (about if estimated else known) in device_works(step)
    assert estimated == ("(estimated)" in step.reason)
    assert "without the profiler" in kernels.sentence(analysis) or not kernels.leads(analysis)


@each("recording", RECORDINGS, name, large)
def test_whatif_states_the_share_as_the_report_does(recording: Path) -> None:
    """In text and in JSON; and its step takes what the report's takes."""
    analysis = analyzed(recording)
    step = analysis.step
    if not analysis.replayable or step.device_share is None:
        return
    projection = analysis.whatif()
    text = " ".join(terminal.drawn(whatif_report.blocks(analysis, projection), 1000).split())
    assert device_works(step) in text
    document = json.loads(whatif_report.render(analysis, projection))
    reported = json.loads(rendered(recording, "json"))["step"]
    for key in ("device_share", "recorded_device_share", "device_share_basis"):
        assert document[key] == reported[key]
