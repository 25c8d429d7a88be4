"""Print the page's table: what is projected from each recording, beside what was measured.

    python -m benchmarks.pull_requests.table [FOLDER]

`FOLDER` has `results.jsonl` and `recordings.tar` as run.sh leaves them. In `recorded`, both are of an NVIDIA H100 with
torch 2.11: one run recorded the programs, a later one timed before and after in turn, in one process.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import syncscan

RECORDED = Path(__file__).parent / "recorded"
REMOVED = {"libreyolo_726": ["rule:item"]}
"""The syncs that a pull request takes away, where it leaves some."""
PUBLIC = {
    "tensorrt_llm_16680": ("NVIDIA/TensorRT-LLM#16680", "request 298 → 270 ms"),
    "torchtitan_3274": ("pytorch/torchtitan#3274", "7,887 → 8,369 tokens/s"),
    "isaaclab_6512": ("isaac-sim/IsaacLab#6512", "step 3.43 → 3.23 ms"),
    "isaaclab_5472": ("isaac-sim/IsaacLab#5472", "step 12.5 → 10.5 ms"),
    "sglang_24013": ("sgl-project/sglang#24013", "20.0 → 21.1 requests/s"),
    "diffusers_9475": ("huggingface/diffusers#9475", "42 % announced, then retracted"),
    "diffusers_14589": ("huggingface/diffusers#14589", "nothing in eager mode"),
    "rf_detr_1492": ("roboflow/rf-detr#1492", "+0.23 % over 9 pairs"),
    "libreyolo_726": ("LibreYOLO/libreyolo#726", "405 against 408 to 413 ms"),
    "lanfactory_120": ("lnccbrown/LANfactory#120", "1.97 → 1.89 ms, under 1 % in use"),
}
"""Each program's pull request, and what is said there of its gain; the five that gained first."""
HEAD = (
    "| pull request | reported | limited by | waits | step, ms | no waits, % | fixed, % | measured, % | medians |",
    "|---|---|---|--:|--:|--:|--:|--:|---|",
)


class Gain(NamedTuple):
    """A gain in parts of the step, with its range or interval."""

    likely: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return it in per cent."""
        likely, low, high = (round(100 * part, 1) + 0.0 for part in self)  # no -0.0
        return f"{likely} ({low} to {high})"

    def holds(self, other: Gain) -> str:
        """Return whether another one's median lies in this range, or at least both overlap."""
        if self.low <= other.likely <= self.high:
            return "inside"
        return "overlap" if self.low <= other.high and other.low <= self.high else "**outside**"


def projected(name: str, recording: Path) -> tuple[syncscan.Analysis, float, Gain]:
    """Return what is projected from a recording of `before` without the waits that the pull request took, and fixed."""
    analysis = syncscan.analyze(recording)
    projection = analysis.whatif(*REMOVED.get(name, ["all"]), fix=True)
    base = projection.baseline_us
    low, high = (1 - us / base for us in reversed(projection.range_us))
    return analysis, 1 - (projection.waits_us or base) / base, Gain(projection.saving_us / base, low, high)


def row(name: str, recording: Path, measured: dict[str, Any]) -> str:
    """Return a program's row."""
    label, public = PUBLIC[name]
    repository, number = label.split("#")
    analysis, of_waits, gain = projected(name, recording)
    own = [f for f in analysis.findings if not f.intended]
    real = Gain(*measured["gain"])
    cells = (
        f"[{label}](https://github.com/{repository}/pull/{number})",
        public,
        analysis.step.bound.value,
        f"{sum(f.per_step for f in own):.0f}",
        f"{measured['before_us'] / 1e3:.2f}",
        f"{100 * of_waits:.1f}",
        f"{gain}",
        f"{real}",
        gain.holds(real),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table as Markdown, the five that gained first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    folder: Path = parser.parse_args().folder
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    measured = {line["name"]: line["paired"] for line in lines if "paired" in line}
    print(*HEAD, sep="\n")
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(folder / "recordings.tar") as tar:
            tar.extractall(unpacked, filter="data")
        for name in PUBLIC:
            recordings = sorted(Path(unpacked).rglob(f"{name}.*json.gz"))
            if recordings and name in measured:
                print(row(name, recordings[-1], measured[name]))


if __name__ == "__main__":
    main()
