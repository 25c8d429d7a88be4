"""List the facts that other installed tools report of a trace: HTA, TensorBoard's plugin, torch's sync debug mode.

    python -m benchmarks.comparison TRACE…

Prints of each trace: the temporal, idle-time and critical-path breakdown of HolisticTraceAnalysis (of the first step),
the plugin's overview (mean of the steps, and its recommendation), and the lines that torch's sync debug mode warned of,
where sample_traces/recorded.json has them. docs/comparison.md quotes it. HTA is the package
`traceinsight`; install it into an environment of its own.
"""

from __future__ import annotations

import argparse
import html
import importlib.util
import json
import logging
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent.parent / "sample_traces" / "recorded.json"


def holistic_trace_analysis(trace: Path) -> Iterator[str]:
    """Its breakdowns of one rank."""
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(trace.resolve())})
    (time,) = analysis.get_temporal_breakdown(visualize=False).to_dict("records")
    yield f"compute {time['compute_time_pctg']} %, idle {time['idle_time_pctg']} %"
    idle, _ = analysis.get_idle_time_breakdown(visualize=False)
    yield "idle: " + ", ".join(f"{row.idle_category} {row.idle_time_ratio:.0%}" for row in idle.itertuples())
    graph, _ = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
    by = graph.get_critical_path_breakdown().groupby("bound_by")["duration"].sum()
    yield f"critical path {by.sum() / 1e3:.2f} ms: " + ", ".join(f"{k} {v / by.sum():.1%}" for k, v in by.items() if v)


def tensorboard_plugin(trace: Path) -> Iterator[str]:
    """Its overview: where a step's time goes, and its recommendation."""
    from torch_tb_profiler.io.cache import Cache
    from torch_tb_profiler.profiler.loader import RunLoader

    with tempfile.TemporaryDirectory() as folder, Cache() as cache:
        shutil.copy(trace, Path(folder) / "worker.1.pt.trace.json.gz")
        run = RunLoader("run", folder, cache).load()
        overview: dict[str, Any] = next(iter(run.profiles.values())).overview
    (whole, *rows) = overview["performance"]
    parts = [f"{row['name']} {row['extra']:.1f} %" for row in (*rows, *whole["children"]) if row["extra"]]
    yield f"step {whole['value'] / 1e3:.2f} ms: " + ", ".join(parts)
    yield "recommendation: " + " ".join(html.unescape(re.sub("<[^>]+>", " ", overview["recommendations"])).split())


def sync_debug_mode(trace: Path) -> Iterator[str]:
    """The lines that it warned of when the sample was recorded."""
    entry = json.loads(RECORDED.read_text())["traces"].get(trace.name.removesuffix(".pt.trace.json.gz"), {})
    for stack in entry.get("warned", ()):
        file, line, function = stack[0]
        yield f"{'/'.join(Path(file).parts[-2:])}:{line} in {function}"


TOOLS = {
    "hta": ("HolisticTraceAnalysis", holistic_trace_analysis),
    "torch_tb_profiler": ("TensorBoard's plugin", tensorboard_plugin),
    "json": ("torch's sync debug mode", sync_debug_mode),
}
"""The package that a tool needs → its name, and what asks it."""


def said(trace: Path) -> Iterator[str]:
    """Yield the report of each tool, a line per fact; a missing tool is named, and a failing one has its error."""
    for package, (name, ask) in TOOLS.items():
        yield f"{name}:"
        if importlib.util.find_spec(package) is None:
            yield "  not installed"
            continue
        try:
            yield from (f"  {line}" for line in ask(trace))
        except Exception as error:
            yield f"  failed: {type(error).__name__}: {error}"


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    warnings.simplefilter("ignore")
    for trace in parser.parse_args().traces:
        print(f"== {trace.name}")
        logging.disable(logging.CRITICAL)
        print("\n".join(said(trace)))


if __name__ == "__main__":
    main()
