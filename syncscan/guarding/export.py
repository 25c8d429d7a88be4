"""Export a guard's counts as scalars for any writer, or as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Counts:
    """A guard's name and its counts so far."""

    name: str
    syncs: int
    """Syncs that weren't allowed."""
    violations: int
    """Syncs beyond the limit."""
    allowed: int
    steps: int
    by_place: Mapping[str, int]
    """Syncs that weren't allowed, by the line that waited."""
    by_reason: Mapping[str, int]
    """Allowed syncs, by reason."""


def scalars(counts: Counts, writer: Any, step: int) -> None:
    """Write each total with the writer's `add_scalar(tag, value, step)`."""
    for name in ("syncs", "violations", "allowed", "steps"):
        writer.add_scalar(f"syncscan/{counts.name}/{name}", getattr(counts, name), step)


def prometheus(counts: Counts) -> str:
    """Return the totals, the syncs of each line and the allowed ones of each reason (text format 0.0.4)."""
    labels = {"guard": counts.name}
    lines: list[str] = []
    helps = {
        "syncs": "Host-device syncs that weren't allowed.",
        "violations": "Syncs beyond the limit.",
        "steps": "Completed steps.",
    }
    for name, text in helps.items():
        lines += _family(f"syncscan_{name}_total", text, [(labels, getattr(counts, name))])
    places = [({**labels, "place": place}, count) for place, count in sorted(counts.by_place.items())]
    lines += _family("syncscan_syncs_by_place_total", "Host-device syncs by line.", places)
    reasons = [({**labels, "reason": reason}, count) for reason, count in sorted(counts.by_reason.items())]
    lines += _family("syncscan_allowed_syncs_total", "Host-device syncs that were allowed, by reason.", reasons)
    return "\n".join(lines) + "\n"


def _family(name: str, text: str, samples: Iterable[tuple[Mapping[str, str], int]]) -> list[str]:
    values = [f"{name}{{{_labels(labels)}}} {value}" for labels, value in samples]
    return [f"# HELP {name} {text}", f"# TYPE {name} counter", *values]


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{_escape(value)}"' for key, value in labels.items())


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
