"""The recordings in sample_traces, each analyzed once for all tests of a process."""

from __future__ import annotations

import functools
from pathlib import Path

import syncscan
from syncscan.model.analysis import Analysis
from syncscan.report import render

FOLDER = Path(__file__).parent.parent / "sample_traces"
RECORDINGS = sorted(FOLDER.rglob("*.json.gz"))
LARGE = 60_000
"""Bytes from which a recording is left to the slow tests, as about half of them are."""


@functools.cache
def analyzed(recording: Path) -> Analysis:
    """Return the analysis of a recording; nobody changes it."""
    return syncscan.analyze(recording)


@functools.cache
def rendered(recording: Path, form: str) -> str:
    """Return the report of a recording in a format, as it is without options."""
    return render(analyzed(recording), form)


def large(recording: Path) -> bool:
    """Return whether only a run of the slow tests has this recording: ranks of jobs, hundreds of ops, long steps."""
    return recording.stat().st_size >= LARGE


def name(recording: Path) -> str:
    """Return where a recording lies below sample_traces."""
    return str(recording.relative_to(FOLDER))
