"""Profile public programs, take the advice that comes first, and prove what it gains.

    python -m benchmarks.public.measure PROGRAMS [NAME …] [--seconds N] [--date DAY] [--out FOLDER]

PROGRAMS has a checkout of each, in a folder that is named as `programs.toml` names it. A program takes some N seconds;
each GPU of the machine takes a program at a time, with its part of the cores. `OUT/results.jsonl` gets a line as soon
as a program is through, also where it failed, and `OUT/recordings` what was profiled.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MATTERS = 2.0
"""Percent of a step below which a gain is none."""
RECORDING_S = 120.0
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")
SYNCSCAN = (sys.executable, "-m", "syncscan")


class Program(msgspec.Struct):
    """A table of `programs.toml`, which says what each is."""

    label: str
    repository: str
    at: str
    license: str
    run: str
    patches: dict[str, str]
    checkout: str = ""
    folder: str = "."
    paths: list[str] = []
    data: str = ""
    environment: dict[str, str] = {}


LOCK = threading.Lock()


class Failed(Exception):
    """A program or a command that didn't do what it should have."""


def programs() -> dict[str, Program]:
    return msgspec.toml.decode((HERE / "programs.toml").read_bytes(), type=dict[str, Program])


def patched(folder: Path, patch: str) -> None:
    """Apply a patch to the files of a folder, where its lines stand exactly as it says."""
    for part in re.split(r"^(?=--- a/)", patch, flags=re.M)[1:]:
        head, *body = part.splitlines(keepends=True)[1:]
        path = folder / head.removeprefix("+++ b/").strip()
        old, new, at = path.read_bytes().decode().splitlines(keepends=True), [], 0
        for line in body:
            if match := HUNK.match(line):
                begin = int(match[1]) - (match[2] != "0")
                new += old[at:begin]
                at = begin
            elif line[0] in " -":
                if old[at].rstrip("\r\n") != line[1:].rstrip("\r\n"):
                    raise Failed(f"{path.name}:{at + 1} isn't what the patch changes")
                new += old[at : at + 1] if line[0] == " " else []
                at += 1
            elif line[0] == "+":
                new.append(line[1:])
        path.write_bytes("".join(new + old[at:]).encode())


def ran(*command: str, limit_s: float, folder: Path, environment: Mapping[str, str], log: Path) -> str:
    """Return what a command writes to stdout; `log` has the rest, and how it ended."""
    with log.open("a") as writer:
        print(f"$ {shlex.join(command)}", file=writer, flush=True)
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, timeout=limit_s, stdout=subprocess.PIPE, stderr=writer,
                stdin=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Failed(f"{shlex.join(command[1:4])} took longer than {limit_s:.0f} s") from None
        if not done.stdout.startswith("{"):  # which is a document of its own
            print(done.stdout[-4_000:], file=writer)
        print(f"(exit code {done.returncode})", file=writer)
    return done.stdout


def read(text: str, log: Path) -> dict[str, Any]:
    """Read the document that a command writes, unless it failed."""
    if not text.startswith("{"):
        raise Failed(log.read_text()[-500:])
    document: dict[str, Any] = json.loads(text)
    return document


def advised(analysis: Mapping[str, Any], patches: Mapping[str, str]) -> dict[str, Any]:
    """Return what the first screen says, the change that follows it or else removes the waits, and its projection."""
    step, remedies = analysis["step"], analysis["remedies"]
    base = (analysis["states"] or {}).get("baseline_us") or step["unprofiled_us"] or step["observed_us"]
    gains = {"waits": (step["recoverable_us"] or 0.0, *(step["recoverable_range_us"] or (0.0, 0.0)))}
    gains |= {_kind(remedy): (remedy["alone_us"], *remedy["range_us"]) for remedy in reversed(remedies)}
    first = _kind(remedies[0]) if remedies and step["advice"] else "waits"
    kind = next(kind for kind in (first, "waits", *patches) if kind in patches)
    return {
        "device": ", ".join(analysis["trace"]["devices"]),
        "step_ms": round(base / 1e3, 3),
        "said": next((text for text in step["advice"] if text.startswith("1. ")), step["summary"]),
        "patch": patches[kind],
        "followed": kind == first,
        "projected": [round(us / base, 4) for us in gains[kind]] if kind in gains else None,
        "of_the_run": (analysis["run"] or {}).get("gain_share"),
    }


def _kind(remedy: Mapping[str, Any]) -> str:
    rule = (remedy["habit"] or "").rpartition("-")[0]
    return "launches" if remedy["launches"] or rule == "launch-bound" else rule or "waits"


def measure(line: dict[str, Any], program: Program, checkout: Path, work: Path, out: Path, seconds: float) -> None:
    """Put into a line what is said of a program, and then what is measured."""
    name = line["name"]
    began, log = time.monotonic(), out / "logs" / f"{name}.txt"
    before, after = work / "before", work / "after"
    shutil.copytree(checkout, before)
    folder, script = before / program.folder, shlex.split(program.run)
    paths = [str(folder / path) for path in program.paths] + [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, **program.environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    run = functools.partial(ran, folder=folder, environment=environment, log=log)
    if program.data:
        run(sys.executable, "-c", f"from benchmarks.public.data import *; {program.data}", limit_s=120)
    shutil.copytree(before, after, symlinks=True)
    run(*SYNCSCAN, "profile", "--out", str(work / "trace"), "--name", name, *script, limit_s=RECORDING_S)
    recordings = sorted((work / "trace").glob("*.json*"))
    if not recordings:
        raise Failed(log.read_text()[-500:])
    recording = shutil.copy(recordings[-1], out / "recordings" / f"{name}.pt.trace.json.gz")
    analysis = read(run(*SYNCSCAN, "analyze", "--format", "json", str(recording), limit_s=60), log)
    line |= advised(analysis, program.patches)
    patched(after, (HERE / "patches" / f"{line['patch']}.patch").read_bytes().decode())
    limit = max(40.0, seconds - (time.monotonic() - began) - 5)
    prove = [*SYNCSCAN, "prove", "--format", "json", "--limit", f"{limit:.0f}", "--matters", f"{MATTERS:g}"]
    pair = [str(root / program.folder / script[0]) for root in (before, after)]
    proof = read(run(*prove, *pair, *script[1:], limit_s=limit + 60), log)
    line |= {
        "measured": proof["gain"] and [round(x, 4) for x in (proof["gain"]["share"], *proof["gain"]["range"])],
        "pairs": [round(p["gain"], 4) for p in proof["pairs"]],
        "verdict": proof["verdict"],
        "same": proof["result"]["same"],
        "stopped": proof["stopped"],
    }


def worker(gpu: int, gpus: int, names: queue.Queue[str], options: argparse.Namespace) -> None:
    """Measure one program after the other on a GPU, and write a line about each."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[gpu * len(cores) // gpus : (gpu + 1) * len(cores) // gpus])  # of this thread
    while True:
        try:
            name = names.get_nowait()
        except queue.Empty:
            return
        of, began = programs()[name], time.monotonic()
        of.environment |= {"CUDA_VISIBLE_DEVICES": str(gpu)} if gpus > 1 else {}
        line: dict[str, Any] = {"name": name, "label": of.label, "date": options.date, "how": "prove"}
        line["torch"] = importlib.metadata.version("torch")
        with tempfile.TemporaryDirectory(prefix=f"{name}-") as work:
            try:
                checkout = options.folder / (of.checkout or name)
                measure(line, of, checkout, Path(work), options.out, options.seconds)
            except (Failed, OSError, ValueError, KeyError) as error:
                line["error"] = str(error)[:600]
        line["seconds"] = round(time.monotonic() - began)
        with LOCK, (options.out / "results.jsonl").open("a") as results:
            results.write(json.dumps(line, ensure_ascii=False) + "\n")
        print(json.dumps(line, ensure_ascii=False), flush=True)


def main() -> None:
    """Measure the programs that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="PROGRAMS", type=Path)
    parser.add_argument("names", metavar="NAME", nargs="*")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--date", default=time.strftime("%Y-%m-%d"))
    parser.add_argument("--out", type=Path, default=Path("syncscan-out/public"))
    parser.add_argument("--gpus", type=int, default=0)
    options = parser.parse_args()
    options.folder, options.out = options.folder.absolute(), options.out.absolute()
    for folder in ("logs", "recordings"):
        (options.out / folder).mkdir(parents=True, exist_ok=True)
    import torch

    names: queue.Queue[str] = queue.Queue()
    for name in options.names or programs():
        names.put(name)
    gpus = options.gpus or max(1, torch.cuda.device_count())
    workers = [threading.Thread(target=worker, args=(gpu, gpus, names, options)) for gpu in range(gpus)]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()


if __name__ == "__main__":
    main()
