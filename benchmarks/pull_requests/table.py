"""Print the page's table from the results of run.sh.

python -m benchmarks.pull_requests.table RESULTS.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

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
    "| pull request | said there | limited by | waits | before, ms | projected, % | measured, % | after, ms |",
    "|---|---|---|--:|--:|--:|--:|--:|",
)


def table(lines: list[dict[str, Any]]) -> str:
    """Return the page's table: a row for each program that was measured, in the order of the page."""
    by_name = {line["name"]: line for line in lines}
    return "\n".join([*HEAD, *(_row(name, by_name[name]) for name in PUBLIC if name in by_name)])


def _row(name: str, line: dict[str, Any]) -> str:
    label, public = PUBLIC[name]
    repository, number = label.split("#")
    link = f"[{label}](https://github.com/{repository}/pull/{number})"
    if "error" in line:
        return f"| {link} | {public} | failed: {line['error']} | | | | | |"
    summary, measured = line["projected"], line["paired"]
    base = summary["baseline_us"]
    low, high = (1 - us / base for us in reversed(summary["range_us"]))
    cells = [
        link,
        public,
        summary["bound"],
        f"{summary['waits']:.0f}",
        f"{measured['before_us'] / 1e3:.2f}",
        _percent(summary["saving_us"] / base, low, high),
        _percent(*measured["gain"]),
        f"{measured['after_us'] / 1e3:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def _percent(share: float, low: float, high: float) -> str:
    return f"{100 * share:.1f} ({100 * low:.1f} to {100 * high:.1f})"


if __name__ == "__main__":
    print(table([json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]))
