"""Whether the program itself copies what it indexes, as the line's source has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.api import analyze_trace
from syncscan.attribute.indexed import copies_what_it_indexes
from syncscan.model.finding import Source
from tests.builder import TraceBuilder
from tests.detect.test_rules import H2D, TO


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("res = th.from_numpy(arr).to(device=timesteps.device)[timesteps].float()", True),
        ("res = torch.as_tensor(arr, device=dev)[t]", True),
        ("table = th.from_numpy(arr).cuda()\nres = table[t]", True),
        ("x[index] = 0", False),
        ("res = x[th.from_numpy(index).to(dev)]", False),
        ("index = th.from_numpy(arr).to(dev)\nres = x[index]", False),
        ("batch = batch.to(dev)\nres = x[mask]", False),
    ],
)
def test_a_copy_before_brackets_is_of_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, expected: bool
) -> None:
    """In brackets it is of an index, and elsewhere of neither."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "diffusion.py"
    path.write_text("def extract(arr, timesteps, x):\n" + "".join(f"    {row}\n" for row in body.split("\n")))
    assert copies_what_it_indexes(Source(str(path), 2, "extract", exact=True)) is expected
    assert not copies_what_it_indexes(Source(str(path), 2, "extract", exact=False))


def test_a_finding_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the source is at hand; else both are named."""
    t = TraceBuilder(
        syncscan={
            "schema": "syncscan.capture/1",
            "lines": {
                "source": "callbacks",
                "frames": [[str(tmp_path / "diffusion.py"), 2, "extract"]],
                "stacks": [[0]],
                "modules": [],
                "syncs": [[1_790_000_000_000_000_000 + 130_000, 100, "stream", 0, -1, 0]],
            },
        }
    )
    t.step(0, 10_000)
    t.launch("busy", at=20, lasts=1000)
    t.sync(TO, at=100, copy=H2D)
    t.op("aten::index", 1_100, 1_110)
    trace = t.trace()
    monkeypatch.chdir(tmp_path)
    (either,) = analyze_trace(trace).findings
    (tmp_path / "diffusion.py").write_text("def extract(arr, t):\n    return torch.from_numpy(arr).to(t.device)[t]\n")
    (table,) = analyze_trace(trace).findings
    assert (either.rule, table.rule) == ("cpu-index", "cpu-index")
    assert "around an index" in either.diagnosis.title
    assert "a table on the host" in table.diagnosis.title
