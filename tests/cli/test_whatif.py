"""`syncscan whatif` as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import UsageError
from tests.builder import TraceBuilder


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four steps in which host and device take turns around a nonzero in the scope `mask`."""
    t = TraceBuilder()
    for start in t.steps(4, lasts=1000):
        with t.scope("mask", start + 10, start + 600):
            t.launch("gemm", at=start + 12, lasts=500)
            t.sync("aten::nonzero", at=start + 20)
        t.launch("head", at=start + 900, lasts=50)
    return str(t.write(tmp_path_factory.mktemp("whatif") / "t.json"))


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["whatif", *args])


def test_text_leads_with_the_step_without_its_syncs(trace: str) -> None:
    """The first line says how long the step would be and how much that saves; then what limits it."""
    result = run(trace, "--step-ms", "1.0")
    assert result.exit_code == 0
    assert result.stdout.startswith("The step without one sync: ")
    assert "step can't be" in result.stdout


def test_a_range_below_the_limits_is_explained() -> None:
    """11.7 ms of host work are an estimate too: the range begins at 10.6 ms."""
    result = run("sample_traces/logged.pt.trace.json.gz", "--remove", "all")
    text = " ".join(result.stdout.split())
    assert "11.7 ms of host work; a step can't be shorter than either; the range allows for errors in both." in text


def test_json_follows_the_contract(trace: str) -> None:
    """The JSON has the keys that other programs rely on, and its numbers agree with one another."""
    document = json.loads(run(trace, "--step-ms", "1.0", "--remove", "scope:mask", "--format", "json").stdout)
    assert document["schema"] == "syncscan.whatif/1"
    assert len(document["removed"]) == 1
    assert document["observed_us"] == 1000
    assert document["baseline_us"] == pytest.approx(1000, rel=0.02)
    assert document["saving_us"] == pytest.approx(document["baseline_us"] - document["predicted_us"])
    assert document["speedup"] == pytest.approx(document["baseline_us"] / document["predicted_us"])
    assert document["range_us"][0] <= document["predicted_us"] <= document["range_us"][1]
    assert document["predicted_us"] >= max(document["limits"]["host_us"], document["limits"]["device_us"]) * 0.999
    assert document["bound_after"] == "device"


def test_several_selectors_add_up(trace: str) -> None:
    """Naming the same finding twice removes it once."""
    document = json.loads(run(trace, "--remove", "all", "--remove", "rule:nonzero", "--format", "json").stdout)
    assert len(document["removed"]) == 1


def test_an_unknown_selector_is_a_usage_error(trace: str) -> None:
    """It ends as a usage error that names what there is."""
    result = run(trace, "--remove", "scope:musk")
    assert isinstance(result.exception, UsageError)
    assert result.exception.exit_code == 2
    assert "scope:mask" in result.exception.hint


def test_a_file_is_not_overwritten_unasked(trace: str, tmp_path: Path) -> None:
    """`-o` writes a new file, and replaces one only with --force."""
    out = tmp_path / "w.json"
    assert run(trace, "--format", "json", "-o", str(out)).exit_code == 0
    before = out.read_text()
    assert run(trace, "-o", str(out)).exit_code != 0
    assert out.read_text() == before
    assert run(trace, "-o", str(out), "--force").exit_code == 0


def test_hostile_names_are_made_harmless(tmp_path: Path) -> None:
    """A scope's name can't send control characters to the terminal."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=1000):
        with t.scope("evil\x1b[31m", start + 1, start + 900):
            t.launch("gemm", at=start + 2, lasts=500)
            t.sync("aten::nonzero", at=start + 20)
    assert "\x1b" not in run(str(t.write(tmp_path / "t.json"))).stdout


def test_a_trace_of_the_host_alone_is_refused_clearly(tmp_path: Path) -> None:
    """Without device work there is nothing to replay, and the message says so."""
    t = TraceBuilder(vendor="none")
    t.op("aten::add", 0, 100)
    result = run(str(t.write(tmp_path / "t.json")))
    assert isinstance(result.exception, UsageError)
    assert "no device work" in result.exception.message
