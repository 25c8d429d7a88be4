"""Print what the first screen said of public programs beside what was measured.

    python -m benchmarks.public.table [--ten] [RESULTS]

`results.jsonl` has a line for each measurement: those of `measure.py`, and earlier ones, whose `how` says how. The last
one of a program counts. `--ten`: five that gained, and five whose advice promised little or nothing, as in the README.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from pathlib import Path
from typing import Any

Line = dict[str, Any]
RESULTS = Path(__file__).parent / "results.jsonl"
NOTHING = 0.05
"""A part of the step: a gain whose interval ends below it is shown to be none that is worth a change."""
HEAD = ("program", "first advice", "projected", "measured", "that is", "on", "change")
HEAD_OF_TEN = ("program", "said", "measured")
NUMBERS = re.compile(r"^\d+\. .*?\([^)]*\), ")
"""Begin of an advice, which the projected share repeats."""


def percent(gain: list[float]) -> str:
    """Return a share, with its range where it has one: whole numbers where it is wide or large."""
    digits = 0 if max(map(abs, gain)) >= 0.2 else 1
    share, *ends = (f"{100 * x:.{digits}f}" for x in gain)
    return f"{share} % ({' to '.join(ends)})" if ends else f"{share} %"


def projected(line: Line) -> str:
    gain = line.get("projected")
    if not gain:
        return "nothing promised"
    return f"{'at most ' if line.get('at_most') else ''}{percent(gain)}"


def measured(line: Line) -> str:
    """Return the gain with its interval, or each pair's where there are too few for one."""
    if line.get("measured"):
        return percent(line["measured"])
    return line.get("error") or f"{', '.join(f'{100 * gain:.1f}' for gain in line['pairs'])} %"


def verdict(line: Line) -> str:
    """Return what the measurement shows."""
    gain = line.get("measured")
    if line.get("verdict") in ("proven", "different result"):
        return str(line["verdict"])
    if not gain:
        return "pairs" if line["pairs"] else ""
    return "no gain" if gain[2] <= NOTHING else "gain" if gain[1] > 0 else "open"


def likely(line: Line) -> float:
    gain = line.get("measured") or [statistics.median(line.get("pairs") or [0.0])]
    return float(gain[0])


def advice(line: Line) -> str:
    return NUMBERS.sub("", line["said"]).replace("|", "\\|")


def row(line: Line) -> tuple[str, ...]:
    change = f"`{line['patch']}`" if line.get("patch") else line.get("change", "")
    device = line.get("device", "").replace("NVIDIA ", "")
    return line["label"], advice(line), projected(line), measured(line), verdict(line), device, change


def row_of_ten(line: Line) -> tuple[str, ...]:
    return (
        line["label"],
        f"{advice(line).partition(';')[0].rstrip('.')}: {projected(line)}",
        f"{measured(line)} ({verdict(line)})",
    )


def ten(lines: list[Line]) -> list[Line]:
    """Choose the five programs that gained most, proven first, and five that gain nothing, the surest first."""
    little = [line for line in lines if (line.get("projected") or [0.0])[0] < NOTHING]
    gained = [line for line in lines if line not in little and likely(line) > NOTHING]
    nothing = [line for line in little if line.get("measured") and not line["said"].startswith("none")]
    return [
        *sorted(gained, key=lambda line: (verdict(line) != "proven", -likely(line)))[:5],
        *sorted(nothing, key=lambda line: (verdict(line) != "no gain", line["measured"][2] - line["measured"][1]))[:5],
    ]


def latest(path: Path) -> list[Line]:
    """Return each program's last line; one of a run that failed only where there is no other."""
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    return list({line["name"]: line for line in sorted(lines, key=lambda line: "error" not in line)}.values())


def main() -> None:
    """Print the table as Markdown, the largest gain on top."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="?", type=Path, default=RESULTS)
    parser.add_argument("--ten", action="store_true")
    options = parser.parse_args()
    lines = sorted(latest(options.results), key=lambda line: -likely(line))
    rows = [row_of_ten(line) for line in ten(lines)] if options.ten else [row(line) for line in lines]
    head = HEAD_OF_TEN if options.ten else HEAD
    for cells in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
