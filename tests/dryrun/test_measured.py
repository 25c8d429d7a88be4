"""The table of waits against single ops with measured truth: those that an H200 waited in are found, and no others."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import syncscan
from syncscan.model.finding import Severity

torch = pytest.importorskip("torch")
SAMPLES = Path(__file__).parent.parent.parent / "sample_traces"
AMBIGUOUS = {
    "other_idle_stream": "waits for work of its own stream alone, which shares the device with the queue",
    "empty_cache_used": "waits only while there is something to free, and the best of two runs had nothing",
}
NEED_PACKAGES = {"nms", "batched_nms", "torchmetrics_accuracy", "torchmetrics_unchecked"}
"""Ops of packages that may not be installed."""


@pytest.mark.slow
def test_ops_wait_where_they_were_measured_to() -> None:
    """All recorded ops that can run here, told from the ops' own names and arguments."""
    facts = json.loads((SAMPLES / "rules" / "rules_zoo.json").read_text(encoding="utf-8"))["cases"]
    truth = {name[4:]: case["blocks"] for name, case in facts.items() if name.startswith("op::") and "blocks" in case}
    ran, result = _run(set(truth) - set(AMBIGUOUS))
    wrong = {name: truth[name] for name in ran if (name in result) is not truth[name]}
    assert wrong == {}
    assert len(ran) > 320


@pytest.mark.filterwarnings("ignore")
def _run(names: set[str]) -> tuple[set[str], set[str]]:
    """The ops that ran, each in a scope of its name, and those in whose scope a wait was found."""
    ran = set()
    with pytest.MonkeyPatch.context() as patch, syncscan.pretend_gpu() as rec:
        patch.syspath_prepend(str(SAMPLES))
        # torch.compile turns these checks off for the whole process (torch/_dynamo/eval_frame.py, TorchPatcher).
        patch.setattr(torch.distributions.Distribution, "_validate_args", True)
        zoo: Any = importlib.import_module("ops_zoo")
        for name, case in zoo.ops().items():
            if name not in names - NEED_PACKAGES:
                continue
            with torch.profiler.record_function(f"op::{name}"):
                case()
            ran.add(name)
    sys.modules.pop("ops_zoo", None)
    flagged = (f for f in rec.findings if f.severity is not Severity.INFO)
    return ran, {scope[4:] for f in flagged for scope in f.scope if scope.startswith("op::")}
