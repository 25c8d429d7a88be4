"""A script that is captured with --explain-compile has in its trace what dynamo said."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan import api
from syncscan.capture.compiling import COMPILES_NOTHING
from syncscan.capture.plan import Plan
from syncscan.capture.script_capture import run_script
from syncscan.capture.session import Session
from syncscan.model.states import CompileKind, CompileRecord

torch = pytest.importorskip("torch")
pytest.importorskip("torch._dynamo")
pytestmark = pytest.mark.usefixtures("own_main_program")

PLAN = Plan(wait=0, warmup=1, active=1, calibrate=0, settle=0)
NET = """
import sys, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return self.inner(x) * x.sum().item()
torch._dynamo.reset()
torch._dynamo.utils.clear_compilation_metrics()
torch._dynamo.utils.graph_break_reasons.clear()
torch._dynamo.utils.counters.clear()
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def train(steps, net):
    for i in range(steps):
        net(torch.ones(2)).sum().backward()
        opt.step()
"""

Explain = Callable[..., CompileRecord | None]


@pytest.fixture
def explain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Explain:
    monkeypatch.chdir(tmp_path)

    def run(code: str, explain_compile: bool = True) -> CompileRecord | None:
        (tmp_path / "train.py").write_text(NET + textwrap.dedent(code))
        done = run_script(
            "train.py",
            (),
            lambda: Session(tmp_path / "out", "train", PLAN, notify=lambda sentence: None),
            explain_compile=explain_compile,
        )
        return api.analyze(done.paths[-1]).trace.info.capture.compiled

    return run


def test_a_compiled_program_says_where_it_breaks(explain: Explain) -> None:
    """At the line of the read-back."""
    record = explain("train(50, torch.compile(net, backend='eager'))")
    assert record is not None
    breaks = [(e.function, e.line) for e in record.events if e.kind is CompileKind.BREAK]
    assert breaks == [("forward", 10)]


def test_a_program_that_compiles_nothing_is_told_so(explain: Explain) -> None:
    """Nothing of it is given to dynamo."""
    record = explain("train(50, net)")
    assert record is not None
    assert (record.events, record.notes) == ((), (COMPILES_NOTHING,))


def test_nothing_is_asked_unasked(explain: Explain) -> None:
    """And nothing is stored."""
    assert explain("train(50, net)", explain_compile=False) is None
