"""Write a Fleet for other programs: as JSON (schema `syncscan.fleet/3`), and as flagged lines for CI servers.

`check` and `diff` rely on that JSON, too. A flagged line stands for all ranks that have the finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from syncscan.fleet.saved import SCHEMA, without_replay
from syncscan.model.finding import Finding
from syncscan.model.fleet import Fleet
from syncscan.model.json_text import Document, indented
from syncscan.report.flagged import NOTHING, Flagged, FlaggedLine, place_of
from syncscan.report.fleet_story import FleetStory, finding_texts, headline, story_of, unread
from syncscan.report.frames import JOB_COLUMNS, fleet_rows
from syncscan.report.phrases import sentences
from syncscan.report.story import FindingText
from syncscan.report.units import times
from syncscan.version import __version__


class FleetDocument(Document, frozen=True):
    """The whole analysis of a job."""

    said: FleetStory
    job: Fleet


def render(fleet: Fleet) -> str:
    """Return the job as indented JSON; times in µs, means per step, unless the name ends in `_ns`."""
    return indented(document(fleet)) + "\n"


def document(fleet: Fleet) -> FleetDocument:
    return FleetDocument(schema=SCHEMA, syncscan=__version__, said=story_of(fleet), job=without_replay(fleet))


TOOL = "syncscan fleet"


def flagged_job(fleet: Fleet) -> Flagged:
    """Return the findings of a job, by the job's gain, with its verdict and advice.

    A line has a row per rank and step, with the columns of `Fleet.to_frame()`.
    """
    story, rows = story_of(fleet), _rows(fleet)
    conclusion = (story.verdict, story.reason, story.summary, *story.then)
    return Flagged(
        tool=TOOL,
        path=next(headline(fleet), ""),
        lines=tuple(_line(text, rows.get(text.of.id, ())) for text in finding_texts(fleet)),
        columns=tuple(JOB_COLUMNS),
        rows=tuple(rows.get("", ())),
        passed=NOTHING,
        closing=conclusion,
        output=sentences(*conclusion, *fleet.notes),
        notifications=tuple(("warning", sentence) for sentence in _incomplete(fleet, story.missing)),
    )


def _rows(fleet: Fleet) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the rows of a job by the finding's id; those of ranks without findings under an empty one."""
    rows: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in fleet_rows(fleet):
        rows[row.get("id", "")].append(row)
    return rows


def _line(text: FindingText, rows: Sequence[Mapping[str, Any]]) -> FlaggedLine:
    f = text.of
    gain = "" if f.recoverable_us is None else f"Removed on all its ranks, the job's step is {text.saves} shorter"
    doubt = f" ({text.doubt})" if gain and text.doubt else ""
    cost = f"{f.title} {text.on}: waits {text.waits}, {times(f.per_step)}"
    message = sentences(f"Waits {text.waits}, {times(f.per_step)}, {text.on}", f"{gain}{doubt}", text.wrong, f.fix)
    function = f.source.function if f.source else ""
    op = f.op or f.call
    return FlaggedLine(
        rule=f.rule,
        severity=f.severity,
        title=f.title,
        message=message,
        place=place_of(f.source),
        summary=f"{f.title}: {message}",
        inside=(" > ".join(f.scope) or function or op, "member" if f.scope or not function else "function"),
        fingerprints={"syncscanFindingId/v1": f.id},
        figures=_figures(f),
        name=f"{op} {text.on} [{f.id}]",
        group=(f.source.file if f.source else "") or " > ".join(f.scope) or "syncscan",
        took_us=f.wait_us,
        cost=cost,
        details=(text.where, f"{gain}{doubt}", text.wrong, f"instead: {f.fix}"),
        rows=tuple(rows),
    )


def _figures(f: Finding) -> dict[str, Any]:
    figures = {
        "cause": f.cause.value,
        "phase": f.phase.value,
        "ranks": list(f.ranks),
        "per_step": f.per_step,
        "wait_us": f.wait_us,
        "bubble_us": f.bubble_us,
        "alone_us": f.alone_us,
        "job_gain_us": f.recoverable_us,
        "job_gain_range_us": f.recoverable_range_us,
    }
    return {name: value for name, value in figures.items() if value is not None}


def _incomplete(fleet: Fleet, missing: str) -> tuple[str, ...]:
    left_out = (f"{path}: {reason}" for path, reason in unread(fleet))
    return tuple(sentence for sentence in (missing, *left_out, *fleet.notes) if sentence)
