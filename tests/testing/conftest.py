"""Gives the tests a machine as with a GPU, and what tests inside of tests import."""

from __future__ import annotations

import importlib

import pytest

from tests.as_on_a_gpu import machine, process


@pytest.fixture(scope="session")
def imported() -> None:
    """All that tests inside of tests import: pytester takes their modules away again, and torch's can't come twice."""
    torch = pytest.importorskip("torch")
    with torch.profiler.profile():
        torch.ones(1)
    for name in ("testing.failure", "testing.watched_test", "capture.session", "report.html", "pytest_plugin"):
        importlib.import_module(f"syncscan.{name}")
    for name in ("cuda", "device_functions", "dispatch_mode"):
        importlib.import_module(f"syncscan.dryrun.{name}")


__all__ = ["imported", "machine", "process"]
