"""A guard's counts go in, scalars for any writer or Prometheus' text come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscan.guarding.guard import Guard


def scalars(guard: Guard, writer: Any, step: int) -> None:
    """Write each total with the writer's `add_scalar(tag, value, step)`."""
    for name, value in _totals(guard).items():
        writer.add_scalar(f"syncscan/{guard.name}/{name}", value, step)


def prometheus(guard: Guard) -> str:
    """The totals, the syncs of each line and the allowed ones of each reason (text format 0.0.4)."""
    own = {"guard": guard.name}
    lines: list[str] = []
    helps = {
        "syncs": "Host-device syncs that nobody allowed.",
        "violations": "Of those, how many were beyond the limit.",
        "steps": "Steps that have ended.",
    }
    totals = _totals(guard)
    for name, told in helps.items():
        lines += _family(f"syncscan_{name}_total", told, [(own, totals[name])])
    places = [({**own, "place": place}, count) for place, count in sorted(guard.by_place.items())]
    lines += _family("syncscan_syncs_by_place_total", "Host-device syncs by the line that waited.", places)
    reasons = [({**own, "reason": reason}, count) for reason, count in sorted(guard.by_reason.items())]
    lines += _family("syncscan_allowed_syncs_total", "Host-device syncs that were allowed, by reason.", reasons)
    return "\n".join(lines) + "\n"


def _totals(guard: Guard) -> dict[str, int]:
    return {
        "syncs": guard.count,
        "violations": guard.violation_count,
        "allowed": guard.allowed_count,
        "steps": guard.steps,
    }


def _family(name: str, told: str, samples: Iterable[tuple[Mapping[str, str], int]]) -> list[str]:
    values = [f"{name}{{{_labels(labels)}}} {value}" for labels, value in samples]
    return [f"# HELP {name} {told}", f"# TYPE {name} counter", *values]


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
