"""Summarize where the host's time goes, from counted slices and from samples."""

from __future__ import annotations

from collections.abc import Sequence

from syncscan.host.counted import counted_host
from syncscan.host.sampled import sampled_of
from syncscan.model.finding import Finding
from syncscan.model.host import Host
from syncscan.model.step import StepSummary
from syncscan.model.trace import Trace


def host_of(trace: Trace, step: StepSummary, findings: Sequence[Finding]) -> Host:
    return Host(sampled=sampled_of(trace, step.unprofiled_us), counted=counted_host(trace, step, findings))
