"""All that a dry run imports in its child process is imported here once."""

from __future__ import annotations

import importlib

import pytest

from syncscan.capture.torch_hooks import unseen


@pytest.fixture(scope="session", autouse=True)
def imported() -> None:
    """An optimizer's first step imports `torch._dynamo`, a simulated GPU `torch.utils.cpp_extension`."""
    pytest.importorskip("torch")
    for name in ("torch._dynamo", "torch.utils.cpp_extension", "syncscan.report.html", "syncscan.dryrun.pretend"):
        importlib.import_module(name)
    unseen()
