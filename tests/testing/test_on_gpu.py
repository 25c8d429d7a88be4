"""The plugin on a real device: a planted read-back three calls deep, under a guard and recorded."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]
pytest_plugins = ["pytester"]

PROGRAM = """
import pytest
import torch
import syncscan as library

def log(loss):
    return loss.item()

def finish(loss):
    if PLANTED:
        {around}
            log(loss)
    return loss

def step(x):
    return finish((x @ x).square().mean())

{marks}
def test_step(syncscan):
    x = torch.randn(256, 256, device="cuda")
    for _ in range(5):
        step(x)
        syncscan.step()
"""


@pytest.mark.parametrize("mark", ["no_syncs", "limit_syncs(0, wait_ms=1e6)"])
@pytest.mark.parametrize(
    ("planted", "around", "passes"),
    [(False, "if True:", True), (True, "if True:", False), (True, "with library.allow('its log'):", True)],
)
def test_a_planted_sync_fails_with_its_line(
    mark: str, planted: bool, around: str, passes: bool, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And passes when it is allowed with a reason."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    program = PROGRAM.format(around=around, marks=f"@pytest.mark.{mark}").replace("PLANTED", str(planted))
    pytester.makepyfile(test_it=program)
    done = pytester.runpytest_subprocess("-p", "syncscan.pytest_plugin")
    done.assert_outcomes(passed=int(passes), failed=int(not passes))
    if not passes:
        line = next(number for number, text in enumerate(program.strip().splitlines(), 1) if "loss.item()" in text)
        assert f"test_it.py:{line} in log" in done.stdout.str()
        assert "syncscan explain item" in done.stdout.str()
