"""Generate the traces of a job of many ranks with known delays in known ranks, and measure how long finding them takes.

    python -m benchmarks.fleet make DIR --ranks 4096
    python -m benchmarks.fleet run DIR --workers 2
    python -m benchmarks.fleet run DIR --workers 2 --kill

Each rank launches kernels that take a bit longer than their launches, and meets all others in one all-reduce a step,
which ends for all when the last has come. In some steps one rank is late: its kernels are longer, it waits for a value
and its host then works while its device has nothing to do, its loader is late, or its host is. What it made the others
wait comes from making the traces (`plants.json`), not from what reads them. The ranks' clocks differ by up to 2 ms.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from isal import igzip

FORWARD, BACKWARD, UPDATE = 10, 16, 6
"""Kernels of a step."""
KERNEL_US, LAUNCH_US, GAP_US = 100.0, 5.0, 85.0
"""A kernel, the call that launches it, and the host's way from one launch to the next."""
LATENCY_US, ALL_REDUCE_US, LOADER_US = 3.0, 120.0, 60.0
BASE_NS = 1_790_000_000_000_000_000
FIRST_STEP = 2
LATE = ((1, "input", 3000.0), (2, "host", 9000.0), (4, "sync", 3000.0), (5, "kernels", 700.0), (7, "sync", 2000.0),
        (8, "kernels", 1500.0))  # fmt: skip
"""In which step which cause adds how much, µs. Hosts run ahead: a loader or a host makes late by less than it adds."""
NEAR = 0.1
"""A plant is found if the time that the others are said to have waited for it is that near."""


@dataclass(frozen=True)
class Plant:
    """One rank's delay in one step."""

    step: int
    rank: int
    cause: str
    adds_us: float
    late_us: float = 0.0
    """How much later than the next it came to the all-reduce."""


@dataclass(frozen=True)
class Job:
    """The job to generate: numbers of ranks and steps, and the delays in them."""

    ranks: int
    steps: int
    plants: tuple[Plant, ...]


class Events:
    """The events of one rank, whose clock differs."""

    def __init__(self, skew_us: float) -> None:
        self.skew, self.correlation = skew_us, 0
        self.found: list[dict[str, Any]] = []

    def host(self, kind: str, name: str, begin: float, end: float, **args: Any) -> None:
        self._add(kind, name, 100, 100, begin, end, args)

    def work(self, kind: str, name: str, begin: float, end: float, **args: Any) -> None:
        ids = {"device": 0, "stream": 7, "correlation": self.correlation}
        self._add(kind, name, 0, 7, begin, end, {**ids, **args})

    def call(self, name: str, begin: float, end: float) -> None:
        self.correlation += 1
        self.host("cuda_runtime", name, begin, end, correlation=self.correlation)

    def _add(self, kind: str, name: str, pid: int, tid: int, begin: float, end: float, args: dict[str, Any]) -> None:
        times = {"ts": round(begin + self.skew, 3), "dur": round(end - begin, 3)}
        self.found.append({"ph": "X", "cat": kind, "name": name, "pid": pid, "tid": tid, **times, "args": args})


class Nothing(Events):
    """Receives the events of the first pass, which only needs the times."""

    def _add(self, *what: Any) -> None:
        pass


class Rank:
    """One rank's host and device, step by step."""

    def __init__(self, number: int, job: Job, events: Events) -> None:
        self.ranks, self.count, self.events = job.ranks, job.steps, events
        self.plants = {plant.step: plant for plant in job.plants if plant.rank == number}
        self.slower = 1 + random.Random(number).uniform(0, 0.004)
        self.now = self.free = 0.0

    def steps(self) -> Generator[float, float, None]:
        """Yields when it comes to each step's all-reduce, and is sent when that ends."""
        for step in range(self.count):
            begin, plant = self.now, self.plants.get(step)
            cause, adds = (plant.cause, plant.adds_us) if plant else ("", 0.0)
            self._load(LOADER_US + (adds if cause == "input" else 0.0))
            longer = adds / (FORWARD + BACKWARD) if cause == "kernels" else 0.0
            self._launch("fused_forward", FORWARD, longer)
            if cause == "sync":
                self._item()
            self.now += adds if cause in ("sync", "host") else 0.0
            self._launch("fused_backward", BACKWARD, longer)
            self.now += GAP_US
            arrival = max(self.free, self.now + LAUNCH_US + LATENCY_US)
            end = yield arrival
            self._all_reduce(step, arrival, end)
            self._launch("fused_update", UPDATE, 0.0)
            self.events.host("user_annotation", f"ProfilerStep#{FIRST_STEP + step}", begin, self.now)

    def _load(self, takes: float) -> None:
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        self.events.host("user_annotation", name, self.now + 1, self.now + takes)
        self.now += takes + 1

    def _launch(self, name: str, count: int, longer: float) -> None:
        for _ in range(count):
            self.now += GAP_US
            self.events.host("cpu_op", "aten::mm", self.now - 2, self.now + LAUNCH_US + 1)
            self.events.call("cudaLaunchKernel", self.now, self.now + LAUNCH_US)
            begin = max(self.free, self.now + LAUNCH_US + LATENCY_US)
            self.free = begin + KERNEL_US * self.slower + longer
            self.events.work("kernel", name, begin, self.free)

    def _item(self) -> None:
        e, begin = self.events, self.now
        e.call("cudaMemcpyAsync", begin + 2, begin + 6)
        copied = max(self.free, begin + 9)
        self.free = copied + 2
        e.work("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", copied, self.free, bytes=4)
        self.now = max(self.free, begin + 8) + 2
        e.call("cudaStreamSynchronize", begin + 7, self.now)
        e.host("cpu_op", "aten::item", begin, self.now + 2)
        e.host("cpu_op", "aten::_local_scalar_dense", begin + 1, self.now + 1)
        self.now += 3

    def _all_reduce(self, step: int, arrival: float, end: float) -> None:
        e, last = self.events, self.ranks - 1
        e.host("cpu_op", "c10d::allreduce_", self.now - 2, self.now + LAUNCH_US + 1)
        e.call("cudaLaunchKernel", self.now, self.now + LAUNCH_US)
        listed = str(list(range(self.ranks))) if self.ranks <= 30 else f"[0, 1, ..., {last}]"
        group = {"Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": listed}
        metadata = {"Collective name": "allreduce", "Group size": self.ranks, "dtype": "Float", "Seq": step + 1}
        e.work("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", arrival, end, **metadata, **group)
        self.free = end


def timed(job: Job) -> tuple[list[float], list[Plant]]:
    """When each step's all-reduce ends, and how late the plants make their rank."""
    running = [Rank(k, job, Nothing(0)).steps() for k in range(job.ranks)]
    arrivals, ends, late = [next(steps) for steps in running], [], []
    for step in range(job.steps):
        *_, before, last = sorted(arrivals)
        late += [
            replace(plant, late_us=last - before)
            for plant in job.plants
            if plant.step == step and arrivals[plant.rank] == last
        ]
        ends.append(last + ALL_REDUCE_US)
        if step + 1 < job.steps:
            arrivals = [steps.send(ends[-1]) for steps in running]
    return ends, late


def make(folder: Path, ranks: int, steps: int) -> None:
    """Write the traces of a job, and what is planted in it."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = random.Random(ranks)
    plants = tuple(Plant(step, chosen.randrange(ranks), cause, adds) for step, cause, adds in LATE)
    job = Job(ranks, steps, plants)
    ends, late = timed(job)
    assert len(late) == len(plants), "a planted rank isn't the last of its step"
    (folder / "plants.json").write_text(json.dumps({"plants": [asdict(plant) for plant in late]}, indent=1))
    for number in range(ranks):
        (folder / f"rank{number}.pt.trace.json.gz").write_bytes(_trace(number, job, ends))


def _trace(number: int, job: Job, ends: Sequence[float]) -> bytes:
    events = Events(random.Random(-number - 1).uniform(-2000, 2000) + 10_000)
    steps = Rank(number, job, events).steps()
    next(steps)
    for end in ends:
        with contextlib.suppress(StopIteration):
            steps.send(end)
    metadata = {"backend": "nccl", "rank": number, "world_size": job.ranks, "pg_count": 1}
    head = {
        "schemaVersion": 1,
        "distributedInfo": metadata,
        "baseTimeNanoseconds": BASE_NS,
        "cuda_runtime_version": 13000,
    }
    device = {"deviceProperties": [{"id": 0, "name": "Test Device"}]}
    return bytes(igzip.compress(msgspec.json.encode({**head, **device, "traceEvents": events.found}), 1))


def run(folder: Path, workers: int, kill: bool) -> None:
    """Analyze a job on a Dask cluster of this machine, and say what it found, and what that took."""
    from syncscan.fleet.join import join
    from syncscan.fleet.listing import find
    from syncscan.fleet.run import run as run_job

    began = time.perf_counter()
    paths = find(str(folder))
    print(f"{len(paths)} traces, listed in {time.perf_counter() - began:.1f} s")
    with _cluster(workers) as client:
        pids = client.run(os.getpid)
        client.run(_imported)
        if kill:
            _kill_later(next(iter(pids.values())))
        before, client_s, began = client.run(time.process_time), time.process_time(), time.perf_counter()
        ranks, unread = run_job(paths, scheduler=client.scheduler.address, progress=_Halfway())
        took, client_s = time.perf_counter() - began, time.process_time() - client_s
        used = [now - before.get(worker, 0.0) for worker, now in client.run(time.process_time).items()]
        peaks = [size >> 10 for size in client.run(_peak_kb).values()]
    print(
        f"{len(ranks)} read, {len(unread)} not, by {workers} workers in {took:.1f} s: {len(ranks) / took:.1f} a second"
    )
    print(
        f"CPU: {sum(used):.1f} s of the workers, {max(used):.1f} s of the busiest, {client_s:.1f} s of client and"
        " scheduler"
    )
    print(
        f"a rank: {1e3 * sum(used) / len(ranks):.2f} ms of a worker, {1e3 * client_s / len(ranks):.2f} ms of the client"
    )
    print(f"peak memory: workers {peaks} MB, this process {_peak_kb() >> 10} MB")
    print(f"the ranks' digest: {hash_of(msgspec.json.encode(ranks))}", flush=True)
    began, client_s = time.perf_counter(), time.process_time()
    fleet = join(ranks, unread)
    took, client_s = time.perf_counter() - began, time.process_time() - client_s
    print(
        f"joined in {took:.1f} s, {1e3 * client_s / len(ranks):.2f} ms of CPU a rank; peak memory {_peak_kb() >> 10} MB"
    )
    _compare(folder, fleet)


def hash_of(text: bytes) -> str:
    import hashlib

    return hashlib.sha256(text).hexdigest()[:16]


@contextlib.contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _imported() -> None:
    import syncscan.fleet.worker  # noqa: F401


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class _Halfway:
    """Tells when half of the traces are done."""

    reached = threading.Event()

    def __call__(self, done: int, failed: int, count: int, path: str) -> None:
        if done * 2 >= count:
            self.reached.set()


def _kill_later(pid: int) -> None:
    def kill() -> None:
        _Halfway.reached.wait()
        os.kill(pid, signal.SIGKILL)
        print(f"killed worker {pid}")

    threading.Thread(target=kill, daemon=True).start()


def _compare(folder: Path, fleet: Any) -> None:
    metadata = {late.step: late for late in fleet.lateness}
    plants = [Plant(**plant) for plant in json.loads((folder / "plants.json").read_text())["plants"]]
    result = 0
    for plant in plants:
        late = metadata.get(FIRST_STEP + plant.step)
        text = f"rank {late.rank}, {late.cause.value}, {late.late_us:.0f} µs" if late else "nobody"
        right = late and (late.rank, late.cause.value) == (plant.rank, plant.cause)
        right = right and abs(late.late_us - plant.late_us) <= NEAR * plant.late_us
        result += bool(right)
        print(f"step {FIRST_STEP + plant.step}: rank {plant.rank}, {plant.cause}, {plant.late_us:.0f} µs; told: {text}")
    print(f"plants found: {result} of {len(plants)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--ranks", type=int, default=256)
    making.add_argument("--steps", type=int, default=10)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--workers", type=int, default=2)
    running.add_argument("--kill", action="store_true", help="kill a worker half-way")
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder, options.ranks, options.steps)
    else:
        run(options.folder, options.workers, options.kill)


if __name__ == "__main__":
    main()
