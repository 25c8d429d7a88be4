"""Time each program in six states, in turn, and record it: run.sh calls this on a GPU.

    python measure.py OUT [--device cpu] [--quick] [--only NAME…] [--deadline SECONDS]

A process a program builds and compiles all of its states, all processes at once; then they are let loose one after the
other, while the rest sleep. `OUT/results.jsonl` gets a line as soon as a program is through, `OUT/recordings.tar` its
recordings. Nothing of syncscan is needed; where it can be imported, it makes the recordings.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gzip
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STATES = [(sync, how) for sync in ("sync", "none") for how in ("eager", "compile", "reduce")]
COMPILED = ("sampler", "experts", "ragged", "metrics", "printed", "unpadded")
"""Programs whose compiled step is recorded too."""
WARM, VISIT_S, TIMED_S = 7, 0.05, 3.4
State = tuple[str, str]


# A program's own process


def load(name: str, state: State, device: str, programs: Path) -> Callable[[], None]:
    """A step of this program in this state, with code of its own: dynamo keeps what it knows on the code."""
    import torch

    torch.manual_seed(0)
    spec = importlib.util.spec_from_file_location(f"programs_{'_'.join(state)}", programs)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    program = module.PROGRAMS[name](state[0] == "sync", device)
    if state[1] == "eager":
        return lambda: program.step(*program.nets)
    mode = "reduce-overhead" if state[1] == "reduce" and device != "cpu" else None
    nets = [torch.compile(net, mode=mode) for net in program.nets]

    def step() -> None:
        torch.compiler.cudagraph_mark_step_begin()
        program.step(*nets)

    return step if mode else lambda: program.step(*nets)


def drain(device: str) -> None:
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def prepared(
    name: str, device: str, warm: int, programs: Path
) -> tuple[dict[State, Callable[[], None]], dict[str, Any]]:
    """All states that run, and what dynamo counted while each was compiled, or how it failed."""
    import torch._dynamo.utils as dynamo

    steps, notes = {}, {}
    for state in STATES:
        key, began = " ".join(state), time.time()
        dynamo.counters.clear()
        try:
            step = load(name, state, device, programs)
            for _ in range(warm):
                step()
            drain(device)
        except Exception:
            notes[key] = {"failed": traceback.format_exc()[-1500:]}
            continue
        steps[state] = step
        counted = {
            k: dict(v)
            for k, v in dynamo.counters.items()
            if k in ("frames", "stats", "graph_break", "inductor", "unimplemented", "aot_autograd", "recompiles")
        }
        notes[key] = {"seconds": round(time.time() - began, 1), "dynamo": counted}
    return steps, notes


def timed(steps: dict[State, Callable[[], None]], device: str, seconds: float) -> dict[str, list[float]]:
    """Ms a step of each visit; states are visited there and back."""
    visit, took = {}, {state: [] for state in steps}
    for state, step in steps.items():
        drain(device)
        began = time.perf_counter()
        for _ in range(3):
            step()
        drain(device)
        visit[state] = max(5, min(60, int(VISIT_S * 3 / (time.perf_counter() - began))))
    order, began = list(steps), time.time()
    while time.time() - began < seconds or min(map(len, took.values())) < 4:
        for state in order + order[::-1]:
            step = steps[state]
            step()
            drain(device)
            start = time.perf_counter()
            for _ in range(visit[state]):
                step()
            drain(device)
            took[state].append((time.perf_counter() - start) / visit[state] * 1e3)
    return {" ".join(state): [round(x, 4) for x in values] for state, values in took.items()}


def device_side(step: Callable[[], None], device: str) -> dict[str, Any]:
    """Return the launches of three steps and the time of the device, profiled with the device's records alone."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    if device == "cpu":
        return {}
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        for _ in range(3):
            step()
        torch.cuda.synchronize()
    work, calls = collections.defaultdict(lambda: [0, 0.0]), collections.Counter()
    for event in prof.profiler.kineto_results.events():
        name, ns = event.name(), event.duration_ns()
        if name.startswith(("cuda", "cu")) and event.device_type() == torch.autograd.DeviceType.CPU:
            calls[name] += 1
        elif event.device_type() == torch.autograd.DeviceType.CUDA:
            work[name][0] += 1
            work[name][1] += ns / 1e3
    most = sorted(work.items(), key=lambda item: -item[1][1])
    return {
        "kernels": sum(n for n, _ in work.values()) / 3,
        "device_us": sum(us for _, us in work.values()) / 3,
        "calls": {k: v / 3 for k, v in calls.most_common(12)},
        "by_kernel": [[name[:90], n / 3, round(us / 3, 2)] for name, (n, us) in most[:60]],
    }


def record(step: Callable[[], None], out: Path, name: str, times: list[float], device: str) -> str:
    """A recording of three steps in `out/NAME.json.gz`; says who made it."""
    try:
        import syncscan
    except Exception as error:
        record_plainly(step, out / f"{name}.json.gz", times, device)
        return f"torch.profiler ({type(error).__name__}: {error})"
    folder = out / f"_{name}"
    with syncscan.profile(folder, name=name, calibrate=40, shapes=True) as prof:
        for _ in range(90):
            if prof.done:
                break
            step()
            prof.step()
    built = sorted(folder.glob("*.json.gz"))
    if not built:
        record_plainly(step, out / f"{name}.json.gz", times, device)
        return f"torch.profiler ({prof.failed})"
    shutil.move(built[-1], out / f"{name}.json.gz")
    shutil.rmtree(folder, ignore_errors=True)
    return "syncscan"


def record_plainly(step: Callable[[], None], path: Path, times: list[float], device: str) -> None:
    """A recording by torch alone, with the time of a step without the profiler beside it."""
    from torch.profiler import profile, schedule

    raw = path.with_suffix(".raw")
    with profile(schedule=schedule(wait=1, warmup=4, active=3), record_shapes=True) as prof:
        for _ in range(8):
            step()
            prof.step()
    prof.export_chrome_trace(str(raw))
    text = raw.read_text()
    facts = {
        "schema": "syncscan.capture/1", "syncscan": "0.1.0", "unprofiled_step_us": statistics.median(times) * 1e3,
        "unprofiled_quartiles_us": [q * 1e3 for q in statistics.quantiles(times, n=4)[::2]],
        "unprofiled_mean_us": statistics.mean(times) * 1e3, "unprofiled_steps_us": [t * 1e3 for t in times],
        "unprofiled_clock": "host", "unprofiled_undisturbed": True, "calibrated_steps": len(times),
    }  # fmt: skip
    at = text.index("{") + 1
    with gzip.open(path, "wt", compresslevel=3) as file:
        file.write(text[:at] + f'\n"syncscan": {json.dumps(facts)},' + text[at:])
    raw.unlink()


def worker(name: str, out: Path, device: str, quick: bool, programs: Path) -> None:
    """Prepare all states, wait to be let loose, measure, leave `NAME.json`."""
    began = time.time()
    steps, notes = prepared(name, device, 3 if quick else WARM, programs)
    (out / f"{name}.ready").write_text(json.dumps({"seconds": time.time() - began}))
    while not (out / f"{name}.go").exists():
        time.sleep(0.05)
    began, result = time.time(), {"program": name, "states": notes}
    result["ms"] = timed(steps, device, 0.5 if quick else TIMED_S)
    save(out, result)
    for state, step in steps.items():
        with contextlib.suppress(Exception):
            result["states"][" ".join(state)]["device"] = device_side(step, device)
    save(out, result)
    kinds = [("sync", "eager"), *([("sync", "reduce")] if name in COMPILED else [])]
    for state in kinds:
        if state not in steps:
            continue
        label = name if state == kinds[0] else f"{name}.{'-'.join(state)}"
        try:
            by = record(steps[state], out, label, result["ms"][" ".join(state)], device)
            result.setdefault("recorded", {})[label] = by
        except Exception:
            result.setdefault("recorded", {})[label] = traceback.format_exc()[-800:]
        save(out, result)
    result["measured_s"] = round(time.time() - began, 1)
    save(out, result)
    sys.stdout.flush()
    os._exit(0)  # torch's own ends take seconds


def save(out: Path, result: dict[str, Any]) -> None:
    """Write what is known of a program by now, whole or not at all."""
    draft = out / f".{result['program']}.json"
    draft.write_text(json.dumps(result))
    draft.replace(out / f"{result['program']}.json")


# The driver


class Driver:
    """Starts a process a program, lets one after the other measure, and gathers what they leave."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.began = args, time.time()
        self.out, self.work = Path(args.out), Path(args.work or f"{args.out}/work")
        self.work.mkdir(parents=True, exist_ok=True)
        self.out.mkdir(parents=True, exist_ok=True)
        self.results = (self.out / "results.jsonl").open("a")
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def say(self, text: str) -> None:
        print(f"[{time.time() - self.began:5.0f} s] {text}", flush=True)

    def start(self, name: str) -> None:
        words = [sys.executable, __file__, str(self.work), "--worker", name, "--device", self.args.device]
        words += ["--programs", str(self.args.programs)]
        log = (self.work / f"{name}.txt").open("w")
        self.processes[name] = subprocess.Popen(
            [*words, *(["--quick"] if self.args.quick else [])], stdout=log, stderr=subprocess.STDOUT
        )

    def ready(self, name: str) -> bool:
        return (self.work / f"{name}.ready").exists()

    def left(self) -> float:
        return self.args.deadline - (time.time() - self.began)

    def run(self, names: list[str]) -> None:
        """All of it."""
        for name in names:
            self.start(name)
        self.wait_ready(names, self.args.compile_s)
        late = [name for name in names if not self.ready(name)]
        for name in late:
            self.send(name, signal.SIGSTOP)
        self.say(f"{len(names) - len(late)} ready, not yet: {' '.join(late) or 'none'}")
        for name in names:
            if name not in late:
                self.measure(name)
        for name in late:
            self.send(name, signal.SIGCONT)
        self.wait_ready(late, self.args.deadline - 15)
        for name in late:
            if not self.ready(name):
                self.stop(name)
        for name in late:
            if self.ready(name):
                self.measure(name)
        for name in names:
            self.stop(name)

    def wait_ready(self, names: list[str], until: float) -> None:
        """Wait until these are ready or have died, or so many seconds have passed since the begin."""
        shown: set[str] = set()
        while time.time() - self.began < until:
            waiting = [n for n in names if not self.ready(n) and self.processes[n].poll() is None]
            for name in names:
                if self.ready(name) and name not in shown:
                    shown.add(name)
                    self.say(f"{name} is compiled")
            if not waiting:
                return
            time.sleep(0.3)

    def measure(self, name: str) -> None:
        """Let a program measure, and gather what it leaves."""
        if self.left() < 6 or self.processes[name].poll() is not None:
            self.say(f"{name} is left out: {'no time' if self.left() < 6 else 'it died'}")
            self.gather(name)
            return
        (self.work / f"{name}.go").touch()
        try:
            self.processes[name].wait(min(self.args.each_s, max(1.0, self.left() - 2)))
        except subprocess.TimeoutExpired:
            self.say(f"{name} took too long")
        self.stop(name)
        self.gather(name)

    def gather(self, name: str) -> None:
        """Append a program's results and recordings to those of the whole."""
        result, log = self.work / f"{name}.json", self.work / f"{name}.txt"
        text = result.read_text() if result.exists() else json.dumps({"program": name, "log": log.read_text()[-3000:]})
        self.results.write(text + "\n")
        self.results.flush()
        for kind in ("eager", "compiled"):
            matches = [p for p in self.work.glob(f"{name}*.json.gz") if ("." in p.name[:-8]) == (kind == "compiled")]
            if matches:
                with tarfile.open(self.out / f"{kind}.tar", "a") as tar:
                    for path in matches:
                        tar.add(path, path.name)
        self.say(f"{name}: {summary(text)}")

    def send(self, name: str, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.processes[name].send_signal(number)

    def stop(self, name: str) -> None:
        if self.processes[name].poll() is None:
            self.send(name, signal.SIGKILL)
            self.processes[name].wait()


def summary(text: str) -> str:
    """The medians of a program in one line."""
    result = json.loads(text)
    medians = {k: round(statistics.median(v), 2) for k, v in result.get("ms", {}).items()}
    failed = [k for k, v in result.get("states", {}).items() if "failed" in v]
    return f"{medians} failed {failed} recorded {result.get('recorded')} {result.get('log', '')[-300:]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--work")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--programs", type=Path, default=HERE / "programs.py", help="the file that has them")
    parser.add_argument("--worker")
    parser.add_argument("--deadline", type=float, default=318)
    parser.add_argument("--compile-s", type=float, default=150)
    parser.add_argument("--each-s", type=float, default=40)
    args = parser.parse_args()
    if args.worker:
        worker(args.worker, Path(args.out), args.device, args.quick, args.programs)
        return
    names = args.only or list(names_of(args.programs))
    Driver(args).run(names)


def names_of(programs: Path) -> Iterator[str]:
    """The programs of this file, without importing torch; those that take longest to compile first."""
    text = programs.read_text()
    listed = text[text.rindex("for make in (") :].split("(", 1)[1].split(")")[0]
    yield from (word.strip() for word in listed.split(",") if word.strip())


if __name__ == "__main__":
    main()
