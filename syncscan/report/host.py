"""From where a step's host time goes to what JSON says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from syncscan.model.host import Host, HostNode, HostShare, SampledHost


def document(host: Host) -> dict[str, Any] | None:
    """As plain dicts and lists; None where nothing is known."""
    if host.sampled is None:
        return None
    return {"sampled": _sampled(host.sampled)}


def _sampled(host: SampledHost) -> dict[str, Any]:
    return {
        "step_us": host.step_us,
        "steps": host.steps,
        "samples": host.samples,
        "overhead": host.overhead,
        "phases": _shares(host.by_phase()),
        "owners": _shares(host.by_owner()),
        "nodes": [_node(node) for node in host.nodes],
    }


def _shares(shares: Sequence[HostShare]) -> list[dict[str, Any]]:
    return [{"name": s.name, "us": s.us, "share": s.share} for s in shares]


def _node(node: HostNode) -> dict[str, Any]:
    return {
        "parent": node.parent,
        "function": node.function,
        "file": node.file,
        "line": node.line,
        "owner": node.owner,
        "phase": node.phase.value,
        "us": node.us,
        "self_us": node.self_us,
    }
