"""From an Analysis to GitHub's workflow commands, which show findings as annotations at their lines."""

from __future__ import annotations

from syncscan.model.analysis import Analysis
from syncscan.model.finding import Finding, Severity
from syncscan.model.step import StepSummary
from syncscan.report.phrases import certainty, in_library, line, measured, projected, real, sentences, what
from syncscan.report.story import story_of
from syncscan.report.workflow_command import command

KINDS = {Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}
"""An error annotation doesn't fail the job: that is what `syncscan check` is for."""
A_KIND = 10
"""GitHub shows at most so many annotations of a kind from a step, and 50 from a job."""
CLOSING = 4000
"""Characters of the annotation with verdict and advice."""


def render(analysis: Analysis) -> str:
    """One workflow command a finding above `info`, the most important first, and a closing notice with the verdict.

    At most 10 of a kind; the closing notice says how many were left out.
    """
    room = {"error": A_KIND, "warning": A_KIND, "notice": A_KIND - 1}
    lines = []
    found = real(analysis.shown.findings)
    for f in found:
        kind = KINDS[f.severity]
        if room[kind]:
            room[kind] -= 1
            lines.append(_annotation(kind, f, analysis.step))
    lines.append(_closing(analysis, len(found) - len(lines)))
    return "\n".join(lines) + "\n"


def _annotation(kind: str, f: Finding, step: StepSummary) -> str:
    source = f.where.source
    doubt = "" if source is None or source.exact else f"The line is uncertain: {certainty(source)}"
    message = sentences(f"{what(f)} {measured(f, step)}", _library(f), projected(f, step), f.diagnosis.fix, doubt)
    properties = {"file": source.file, "line": str(line(source))} if source else {}
    return command(kind, {**properties, "title": f.diagnosis.title}, message)


def _library(f: Finding) -> str:
    return f"It is made in {in_library(f.where)}" if f.where.in_library else ""


def _closing(analysis: Analysis, left_out: int) -> str:
    story = story_of(analysis)
    more = f"{left_out} more of them have no annotation: GitHub shows {A_KIND} of a kind" if left_out else ""
    message = sentences(story.verdict, story.opening, *story.advice, story.steps_found, story.hidden, more)
    return command("notice", {"title": "syncscan"}, message, CLOSING)
