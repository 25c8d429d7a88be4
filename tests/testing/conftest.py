"""Gives the tests a machine as with a GPU, and what tests inside of tests import."""

from __future__ import annotations

import gc
import importlib

import pytest

from tests.as_on_a_gpu import machine, process


@pytest.fixture(scope="session")
def imported() -> None:
    """All that tests inside of tests import: pytester takes their modules away again, and torch's can't come twice.

    Each run inside ends with five collections of garbage, which don't look through what is there by now.
    """
    torch = pytest.importorskip("torch")
    with torch.profiler.profile():
        torch.ones(1)
    importlib.import_module("torch.utils.cpp_extension")
    of_plugin = ("testing.failure", "testing.watched_test", "testing.dry_item", "capture.session", "pytest_plugin")
    for name in (*of_plugin, "report.html", "dryrun.machinery", "dryrun.cuda", "dryrun.dispatch_mode"):
        importlib.import_module(f"syncscan.{name}")
    gc.collect()
    gc.freeze()


__all__ = ["imported", "machine", "process"]
