"""All that a dry run imports in its child process is imported here once."""

from __future__ import annotations

import importlib

import pytest


@pytest.fixture(scope="session", autouse=True)
def imported() -> None:
    """An optimizer's first step imports `torch._dynamo`."""
    pytest.importorskip("torch")
    for name in ("torch._dynamo", "syncscan.report.html", "syncscan.dryrun.pretend", "syncscan.dryrun.program_steps"):
        importlib.import_module(name)
