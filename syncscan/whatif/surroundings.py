"""From a trace, its findings and its measured step to what of the step isn't its own doing: input, and other ranks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from syncscan.model.finding import Finding
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace
from syncscan.whatif.loader import loader_waits

PACED = 0.05
"""A step that waits this part of its time for the DataLoader's workers goes at their pace."""
MOSTLY = 0.5
"""A finding waits behind collectives when they alone fill more than this part of its waits."""


class Surroundings(msgspec.Struct, frozen=True):
    """What of a step others decide."""

    measured: StepSummary
    """The step as recorded."""
    waits_for_loader: bool = False
    """The DataLoader's workers set the step's pace, whatever becomes of its syncs."""
    behind: frozenset[int] = frozenset()
    """Numbers of the findings that mostly wait behind exposed collectives."""


def surroundings_of(trace: Trace, findings: Sequence[Finding], measured: StepSummary) -> Surroundings:
    """What others decide of this step; findings are numbered as they come."""
    paced = loader_waits(trace) > PACED * measured.observed_us * 1e3
    behind = (n for n, f in enumerate(findings) if _waits_for_ranks(f))
    return Surroundings(measured, paced, frozenset(behind))


def _waits_for_ranks(finding: Finding) -> bool:
    communicated = sum([o.cost.communication_ns for o in finding.occurrences])
    return communicated > 0 and communicated > MOSTLY * sum([o.cost.wait_ns for o in finding.occurrences])
