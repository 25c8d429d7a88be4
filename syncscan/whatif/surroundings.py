"""Find influences from outside of a step: its input, and other ranks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace
from syncscan.whatif.loader import loader_waits

PACED = 0.05
"""Least part of its time that a step must wait for the DataLoader's workers to be paced by them."""
MOSTLY = 0.5
"""Part of a finding's waits that collectives alone must fill for it to wait behind collectives."""


class Surroundings(msgspec.Struct, frozen=True):
    """Influences from outside of a step."""

    measured: StepSummary
    """The step as recorded."""
    waits_for_loader: bool = False
    """Whether the DataLoader's workers set the step's pace, independent of its syncs."""
    behind: frozenset[int] = frozenset()
    """Numbers of the findings that mostly wait behind exposed collectives."""


def surroundings_of(trace: Trace, findings: Sequence[Finding], measured: StepSummary) -> Surroundings:
    """Return the influences from outside of this step; findings are numbered in order."""
    paced = loader_waits(trace) > PACED * measured.observed_us * 1e3
    behind = (n for n, f in enumerate(findings) if _waits_for_ranks(f))
    return Surroundings(measured, paced, frozenset(behind))


def _waits_for_ranks(finding: Finding) -> bool:
    communicated = sum([o.cost.communication_ns for o in finding.occurrences])
    return communicated > 0 and communicated > MOSTLY * sum([o.cost.wait_ns for o in finding.occurrences])
