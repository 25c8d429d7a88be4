"""Records every rule's examples and many single ops on a GPU: `python sample_traces/rules_zoo.py OUT`.

Each runs in a scope of its own (`example::RULE`, `instead::RULE`, `op::NAME`) with device work queued ahead, so that a
wait shows. For each case the truth is measured without the profiler: was the host still held when the queue had
drained? Writes the traces `rules.*` (examples, with stacks), `ops.*`, `world.*` and `launch_blocking`, and
`rules_zoo.json` with the truth and the traces' checksums.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from ops_zoo import ops
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from syncscan.detect import PREAMBLE, catalogue

SKIPPED = re.compile(r"^Not (run|recorded): ", re.MULTILINE)
Cases = dict[str, Callable[[], Any]]


def examples() -> Cases:
    """Both code blocks of each rule that can run alone, by scope name."""
    cases: Cases = {}
    scope: dict[str, Any] = {}
    exec(PREAMBLE, scope)
    for doc in catalogue():
        if SKIPPED.search(doc.sections["Use instead"]):
            continue
        for kind, heading in (("example", "Example"), ("instead", "Use instead")):
            name = f"{kind}::{doc.id}"
            code = compile(doc.code(heading), f"{doc.id}.{kind}.py", "exec")
            cases[name] = functools.partial(_run, code, scope)
    return cases


def _run(code: Any, scope: dict[str, Any]) -> None:
    exec(code, dict(scope))


def stepper(cases: Cases) -> tuple[Callable[[], None], dict[str, str]]:
    """A step that runs all cases, each behind queued device work; and what failed, which is left out from then on."""
    big = torch.randn(4096, 4096, device="cuda")
    failed: dict[str, str] = {}

    def step() -> None:
        for name, case in cases.items():
            if name in failed:
                continue
            torch.mm(big, big)
            with record_function(name):
                try:
                    case()
                except Exception as e:
                    failed[name] = f"{type(e).__name__}: {e}"[:200]

    return step, failed


def truth(cases: Cases) -> dict[str, Any]:
    """For each case: the host's time, the queue's, whether the host was held by it, and the debug mode's warnings."""
    big = torch.randn(8192, 8192, device="cuda")
    return {name: _truth(case, big) for name, case in cases.items()}


def _truth(case: Callable[[], Any], big: Any) -> dict[str, Any]:
    try:
        for _ in range(2):
            case()
        best = min(_held(case, big) for _ in range(2))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            case()
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"[:200]}
    finally:
        torch.cuda.set_sync_debug_mode("default")
    host, queue = best
    warned = sum("synchroniz" in str(w.message) for w in caught)
    return {"host_ms": round(host, 3), "queue_ms": round(queue, 3), "blocks": host > queue / 2, "warnings": warned}


def _held(case: Callable[[], Any], big: Any) -> tuple[float, float]:
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(2):
        torch.mm(big, big)
    end.record()
    begin = time.perf_counter()
    case()
    host = (time.perf_counter() - begin) * 1e3
    torch.cuda.synchronize()
    return host, start.elapsed_time(end)


def parts(names: list[str], count: int) -> list[list[str]]:
    """So many parts, so that no file grows too big for a repository."""
    size = -(-len(names) // count)
    return [names[k : k + size] for k in range(0, len(names), size)]


def record(step: Callable[[], None], target: Path, stacks: bool) -> None:
    """One recorded step after three that warm up."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "trace.json"
        with profile(
            activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
            schedule=schedule(wait=1, warmup=2, active=1, repeat=1),
            on_trace_ready=lambda p: p.export_chrome_trace(str(plain)),
            with_stack=stacks,
        ) as prof:
            for _ in range(4):
                step()
                prof.step()
        content = plain.read_bytes()
    for folder in (str(Path(__file__).resolve().parent.parent), sys.prefix):
        content = content.replace(f"{folder}/".encode(), b"")
    target.write_bytes(gzip.compress(content, 9, mtime=0))
    print(f"{target.name:40s} {target.stat().st_size:9,d} bytes", flush=True)


def world(out: Path) -> None:
    """Record the cases that need a process group or a compiler, and take it down again."""
    from world_zoo import cases

    step, failed = stepper({f"world::{name}": case for name, case in cases().items()})
    for name, stacks in (("world", False), ("world.stacks", True)):
        record(step, out / f"{name}.pt.trace.json.gz", stacks)
    print(json.dumps(failed, indent=1), flush=True)
    torch.distributed.destroy_process_group()


def main(out: Path) -> None:
    """Record everything; what fails is named and left out."""
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        x = torch.randn(2048, 2048, device="cuda")
        return record(
            lambda: [x.mm(x).relu().sum() for _ in range(10)], out / "launch_blocking.pt.trace.json.gz", False
        )
    if sys.argv[2:] == ["world"]:
        return world(out)
    facts: dict[str, Any] = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "cases": {}}
    for name, cases, stacks in (("rules", examples(), True), ("ops", {f"op::{k}": v for k, v in ops().items()}, False)):
        for part, names in enumerate(parts(list(cases), 2 if stacks else 4)):
            step, failed = stepper({n: cases[n] for n in names})
            record(step, out / f"{name}.{part}.pt.trace.json.gz", stacks)
            print(json.dumps(failed, indent=1), flush=True)
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        facts["cases"] |= truth(cases)
    blocking = {**os.environ, "CUDA_LAUNCH_BLOCKING": "1"}
    subprocess.run([sys.executable, __file__, str(out)], env=blocking, check=True)
    subprocess.run([sys.executable, __file__, str(out), "world"], check=True)
    facts["sha256"] = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.glob("*.gz"))}
    (out / "rules_zoo.json").write_text(json.dumps(facts, indent=0) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
