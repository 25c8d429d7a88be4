"""In IPython an analysis shows itself, and `%%syncscan` captures the cell that it heads."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from syncscan.api import analyze
from syncscan.report import render
from tests.builder import TraceBuilder
from tests.report.example import typical

pytest.importorskip("IPython")

STEP = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = globals().get("seen", 0) + 1
model(torch.randn(2, 4)).sum().backward()
optimizer.step()
"""
SHORT = "--calibrate 1 --warmup 1 --active 1"


@pytest.fixture
def shell() -> Iterator[Any]:
    """A fresh IPython with the extension loaded."""
    from IPython.core.interactiveshell import InteractiveShell

    built = InteractiveShell()
    built.run_line_magic("load_ext", "syncscan")
    yield built
    built.run_line_magic("unload_ext", "syncscan")
    built.history_manager.end_session()


def shown(shell: Any, value: object) -> dict[str, str]:
    formats, _ = shell.display_formatter.format(value)
    return dict(formats)


def test_an_analysis_shows_itself(shell: Any, tmp_path: Path):
    """As HTML where a notebook can show it, as the text report elsewhere."""
    t = TraceBuilder()
    for start in t.steps(3, lasts=1000):
        t.sync("aten::nonzero", at=start + 20, wait=300)
    formats = shown(shell, analyze(t.write(tmp_path / "a.json")))
    assert "aten::nonzero" in formats["text/html"]
    assert "300 µs" in formats["text/html"]
    assert "torch.nonzero" in formats["text/plain"]


def test_text_is_text_in_a_kernel_too(monkeypatch: pytest.MonkeyPatch):
    """Rich would show it at once in a kernel, and give back nothing."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "nonzero waits to learn" in render(typical(), "text", verbose=True)


def test_its_repr_is_one_line(tmp_path: Path):
    """A Python prompt isn't flooded with columns."""
    t = TraceBuilder()
    t.op("aten::add", 0, 1)
    path = t.write(tmp_path / "a.json")
    assert repr(analyze(path)) == f"<Analysis of {str(path)!r}: 0 findings, bound: unknown>"


def test_a_cell_is_repeated_as_one_step(shell: Any):
    """The cell runs as often as the capture needs, and its variables stay."""
    pytest.importorskip("torch")
    result = shell.run_cell(f"%%syncscan {SHORT} mine\n{STEP}").result
    assert shell.user_ns["mine"] is result
    assert shell.user_ns["seen"] == 3 + 1 + 1 + 1 + 1
    assert len(result.trace.steps) == 1


def test_two_cells_in_a_row_leave_nothing_behind(shell: Any):
    """Neither hooks nor patches, and no open session: the notebook is as fast as before."""
    torch = pytest.importorskip("torch")
    from syncscan.capture.session import Session

    optimizers = importlib.import_module("torch.optim.optimizer")
    scope = torch.autograd.profiler.record_function

    def state() -> tuple[Any, ...]:
        hooks = dict(optimizers._global_optimizer_post_hooks)
        return hooks, scope.__enter__, scope.__exit__, Session.running, torch.autograd._profiler_enabled()

    before = state()
    for _ in range(2):
        assert shell.run_cell(f"%%syncscan {SHORT}\n{STEP}").success
        assert state() == before


def test_a_loop_runs_once(shell: Any):
    """A cell that steps its optimizer again and again is a loop: each of those steps is a step."""
    pytest.importorskip("torch")
    loop = "for k in range(12):\n    model(torch.randn(2, 4)).sum().backward()\n    optimizer.step()\n    last = k"
    shell.run_cell(STEP)
    result = shell.run_cell(f"%%syncscan {SHORT}\n{loop}").result
    assert shell.user_ns["last"] == 11
    assert len(result.trace.steps) == 1


def test_a_loop_that_is_too_short_says_so(shell: Any, capsys: pytest.CaptureFixture[str]):
    """Nothing recorded is a sentence, not a traceback."""
    pytest.importorskip("torch")
    shell.run_cell(STEP)
    loop = "for k in range(3):\n    model(torch.randn(2, 4)).sum().backward()\n    optimizer.step()"
    result = shell.run_cell(f"%%syncscan {SHORT}\n{loop}")
    assert not result.success
    assert "The loop ended after 2 steps, but the capture needs 7." in str(result.error_in_exec)


def test_a_wrong_option_is_a_sentence(shell: Any):
    """An unknown option names itself."""
    result = shell.run_cell("%%syncscan --bogus\n1")
    assert "unrecognized arguments: --bogus" in str(result.error_in_exec)


def test_an_error_in_the_cell_is_its_own(shell: Any):
    """The cell's exception arrives as it is, and the next capture can start."""
    pytest.importorskip("torch")
    assert isinstance(shell.run_cell(f"%%syncscan {SHORT}\n1 / 0").error_in_exec, ZeroDivisionError)
    assert shell.run_cell(f"%%syncscan {SHORT}\n{STEP}").success


def test_out_keeps_the_trace(shell: Any, tmp_path: Path):
    """With a folder the trace stays there."""
    pytest.importorskip("torch")
    shell.run_cell(f"%%syncscan {SHORT} --out {tmp_path}\n{STEP}")
    assert len(list(tmp_path.glob("cell.*.pt.trace.json.gz"))) == 1
