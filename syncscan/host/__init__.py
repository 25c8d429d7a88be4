"""From a trace and its verdict to where the host's time goes, as far as anything tells it."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.host.counted import counted_host
from syncscan.host.sampled import sampled_of
from syncscan.model.finding import Finding
from syncscan.model.host import Host
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace


def host_of(trace: Trace, step: StepSummary, findings: Sequence[Finding]) -> Host:
    """Where the host's time goes.

    Args:
        trace: any trace.
        step: with its verdict, and the scale of host times where a measurement tells it.
        findings: the syncs.
    """
    return Host(sampled=sampled_of(trace, step.unprofiled_us), counted=counted_host(trace, step, findings))
