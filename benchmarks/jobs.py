"""Measure what removing a sync gains a whole job of several ranks on GPUs, and project it anywhere.

    python -m benchmarks.jobs record DIR [--only NAME…] [--ranks 2]   times each job as it is and without its syncs,
                                                                      and records every rank of it as it is
    python -m benchmarks.jobs table DIR                               anywhere: projects from the recordings
    python -m benchmarks.jobs record DIR --device cpu                 a try without GPUs, with gloo

Each job's ranks run in processes of their own. Both variants are timed in turn (A B B A), with every rank's device
drained at both ends; a turn takes as long as its slowest rank, and the median of the rounds' ratios counts. Then all
ranks are captured at the same steps, as `syncscan profile` would under torchrun.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Step = Callable[[bool], object]
ROOT = Path(__file__).parents[1]
TURN_S, ROUNDS = 0.25, 8
SEED = 7
KNOWN = 0.005
"""A gain is known where its ratio's standard error is below this."""


@dataclass(frozen=True)
class Rank:
    """One process of a job."""

    number: int
    count: int
    device: str

    @property
    def last(self) -> bool:
        """Whether it is the one that arrives last in the jobs that have one."""
        return self.number == self.count - 1


@dataclass(frozen=True)
class Shape:
    """How large a job's network and batch are."""

    layers: int = 6
    width: int = 512
    batch: int = 16
    tokens: int = 128

    def network(self, device: str) -> Any:
        """A transformer's encoder."""
        from torch import nn

        layer = nn.TransformerEncoderLayer(self.width, 8, 4 * self.width, dropout=0.0, batch_first=True)
        return nn.TransformerEncoder(layer, self.layers, enable_nested_tensor=False).to(device)

    def inputs(self, device: str) -> Any:
        """One batch."""
        import torch

        return torch.randn(self.batch, self.tokens, self.width, device=device)


LARGE = Shape(8, 1024, 32, 256)
"""Its kernels take longer than its launches."""
MIDDLE = Shape(12, 768, 24, 256)
SMALL = Shape(4, 256, 8, 64)
"""Its launches take longer than its kernels."""


def ddp(rank: Rank, shape: Shape) -> Any:
    """The network, its gradients averaged over the ranks."""
    import torch

    ids = [torch.cuda.current_device()] if rank.device == "cuda" else None
    return torch.nn.parallel.DistributedDataParallel(shape.network(rank.device), device_ids=ids)


def fsdp2(rank: Rank, shape: Shape) -> Any:
    """The network, its parameters sharded over the ranks; of four, over two and replicated over two."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    network = shape.network(rank.device)
    names = ("replicate", "shard") if rank.count == 4 else ("shard",)
    mesh = init_device_mesh(rank.device, (2, 2) if rank.count == 4 else (rank.count,), mesh_dim_names=names)
    for layer in network.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(network, mesh=mesh)


def spin(ms: float) -> None:
    """Work of the host's, in Python."""
    end = time.perf_counter() + ms / 1e3
    while time.perf_counter() < end:
        pass


def multiply(device: str, times: int, size: int = 4096) -> Callable[[], None]:
    """Kernels that only this rank has."""
    import torch

    a = torch.randn(size, size, device=device) / size

    def work() -> None:
        for _ in range(times):
            a @ a

    return work


def nothing() -> None:
    """No work."""


def clip(network: Any, fixed: bool) -> None:
    """Clip the gradients, and read their norm unless the job is fixed."""
    import torch

    with torch.profiler.record_function("clip"):
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        if not fixed:
            norm.item()


@dataclass(frozen=True)
class Habit:
    """Extra work of a rank's step besides its training, and whether the fixed job keeps it."""

    item: bool = False
    host_ms: float = 0.0
    """Behind the read-back: what hides behind the device when nobody waits."""
    times: int = 0
    load_ms: float = 0.0
    reads: int = 0
    masked: bool = False
    reduced: bool = False
    """The loss is averaged over the ranks before it is read."""
    clipped: bool = False
    """The gradients' norm is read."""


def training(
    wrap: Callable[[Rank, Shape], Any], shape: Shape, habits: Callable[[Rank], Habit]
) -> Callable[[Rank], Step]:
    """A training step with this rank's habit, or without its syncs."""

    def make(rank: Rank) -> Step:
        import torch

        network, x, habit = wrap(rank, shape), shape.inputs(rank.device), habits(rank)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, foreach=True)
        extra = multiply(rank.device, habit.times) if habit.times else nothing
        batches = loader(x, habit.load_ms)
        scope = torch.profiler.record_function

        def step(fixed: bool) -> None:
            batch = next(batches)
            with scope("extra"):
                extra()
            optimizer.zero_grad()
            with scope("forward"):
                out = network(batch)
                errors = out.square()
                if habit.masked and not fixed:
                    with scope("mask"):
                        loss = errors[errors < 4.0].mean()
                elif habit.masked:
                    loss = torch.where(errors < 4.0, errors, 0.0).sum() / errors.numel()
                else:
                    loss = errors.mean()
            if not fixed:
                for _ in range(habit.reads):
                    with scope("statistics"):
                        out.detach().amax().item()
            with scope("backward"):
                loss.backward()
            if habit.clipped:
                clip(network, fixed)
            with scope("optimizer"):
                optimizer.step()
            if habit.reduced:
                with scope("reduce"):
                    loss = loss.detach()
                    torch.distributed.all_reduce(loss)
            if habit.item and not fixed:
                with scope("log"):
                    loss.item()
            if habit.host_ms:
                with scope("host"):
                    spin(habit.host_ms)

        return step

    return make


def pipeline(shape: Shape, habits: Callable[[Rank], Habit]) -> Callable[[Rank], Step]:
    """Two stages: activations go to the last rank, and their gradients come back, for each of four micro-batches."""

    def make(rank: Rank) -> Step:
        import torch
        import torch.distributed as dist

        network, habit, other = shape.network(rank.device), habits(rank), 1 - rank.number
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, foreach=True)
        x, there = shape.inputs(rank.device), shape.inputs(rank.device)
        scope = torch.profiler.record_function

        def first() -> None:
            out = network(x)
            dist.send(out.detach(), other)
            dist.recv(there, other)
            out.backward(there)

        def second(fixed: bool) -> None:
            given = torch.empty_like(x)
            dist.recv(given, other)
            given.requires_grad_()
            loss = network(given).square().mean()
            loss.backward()
            dist.send(given.grad, other)
            if habit.item and not fixed:
                with scope("log"):
                    loss.item()
            spin(habit.host_ms)

        def step(fixed: bool) -> None:
            optimizer.zero_grad()
            for _ in range(4):
                second(fixed) if rank.last else first()
            with scope("optimizer"):
                optimizer.step()

        return step

    return make


def scheduled(shape: Shape, habits: Callable[[Rank], Habit], kind: str) -> Callable[[Rank], Step]:
    """Stages of torch's own pipelining, eight micro-batches under this schedule; the last rank's loss is read."""

    def make(rank: Rank) -> Step:
        import torch
        import torch.distributed.pipelining as pipelining

        network, habit = shape.network(rank.device), habits(rank)
        stage = pipelining.PipelineStage(network, rank.number, rank.count, torch.device(rank.device))
        schedule = getattr(pipelining, kind)(
            stage, n_microbatches=8, loss_fn=lambda out, want: (out - want).square().mean()
        )
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, foreach=True)
        x, want = shape.inputs(rank.device), shape.inputs(rank.device)
        scope = torch.profiler.record_function

        def step(fixed: bool) -> None:
            optimizer.zero_grad()
            losses: list[Any] = []
            with scope("schedule"):
                schedule.step(
                    *(() if rank.number else (x,)), **({"target": want, "losses": losses} if rank.last else {})
                )
            if habit.clipped:
                clip(network, fixed)
            with scope("optimizer"):
                optimizer.step()
            if habit.item and rank.last and not fixed:
                with scope("log"):
                    torch.stack(losses).mean().item()
            spin(habit.host_ms)

        return step

    return make


def resnet(habits: Callable[[Rank], Habit], batch: int = 96, *, sync_norms: bool = False) -> Callable[[Rank], Step]:
    """A ResNet-50 under DDP, whose loss and accuracy are read; each rank norms by its own batch, or by all of them."""

    def make(rank: Rank) -> Step:
        import torch
        import torchvision

        network, habit = torchvision.models.resnet50().to(rank.device), habits(rank)
        if sync_norms:
            network = torch.nn.SyncBatchNorm.convert_sync_batchnorm(network)
        network = torch.nn.parallel.DistributedDataParallel(network, device_ids=[rank.number])
        optimizer = torch.optim.SGD(network.parameters(), 1e-3, momentum=0.9)
        x = torch.randn(batch, 3, 224, 224, device=rank.device)
        labels = torch.randint(0, 1000, (batch,), device=rank.device)
        extra = multiply(rank.device, habit.times) if habit.times else nothing

        def step(fixed: bool) -> None:
            extra()
            out = network(x)
            loss = torch.nn.functional.cross_entropy(out, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if habit.item and not fixed:
                with torch.profiler.record_function("log"):
                    loss.item()
                    (out.argmax(1) == labels).float().mean().item()
            spin(habit.host_ms)

        return step

    return make


def accumulated(habits: Callable[[Rank], Habit], shape: Shape) -> Callable[[Rank], Step]:
    """Three passes of a network under DDP for each step of its optimizer, and each pass's loss is read."""

    def make(rank: Rank) -> Step:
        import torch

        network, x, habit = ddp(rank, shape), shape.inputs(rank.device), habits(rank)
        optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, foreach=True)

        def step(fixed: bool) -> None:
            for k in range(3):
                with network.no_sync() if k < 2 else contextlib.nullcontext():
                    loss = network(x).square().mean()
                    loss.backward()
                if habit.item and not fixed:
                    loss.item()
                spin(habit.host_ms)
            norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            if habit.clipped and not fixed:
                norm.item()
            optimizer.step()
            optimizer.zero_grad()

        return step

    return make


def gathered(
    wrap: Callable[[Rank, Shape], Any], shape: Shape, habits: Callable[[Rank], Habit]
) -> Callable[[Rank], Step]:
    """A training step, behind it a metric of all ranks that is read."""
    plain = training(wrap, shape, lambda rank: Habit())

    def make(rank: Rank) -> Step:
        import torch
        import torch.distributed as dist

        train, habit, own = plain(rank), habits(rank), torch.randn(1024, device=rank.device)
        of_all = [torch.empty_like(own) for _ in range(rank.count)]

        def step(fixed: bool) -> None:
            train(True)
            dist.all_gather(of_all, own)
            mean = torch.stack(of_all).mean()
            if not fixed:
                mean.item()
            spin(habit.host_ms)

        return step

    return make


def loader(x: Any, ms: float) -> Any:
    """Batches without end, each after so much work of the host's."""
    import torch

    class Batches(torch.utils.data.IterableDataset):  # type: ignore[misc]
        def __iter__(self) -> Any:
            while True:
                spin(ms)
                yield x

    return iter(torch.utils.data.DataLoader(Batches(), batch_size=None)) if ms else iter(lambda: x, None)


def everywhere(**habit: Any) -> Callable[[Rank], Habit]:
    """Give each rank the habit."""
    return lambda rank: Habit(**habit)


def on_first(first: dict[str, Any], others: dict[str, Any] | None = None) -> Callable[[Rank], Habit]:
    """One habit on rank 0, another on the rest."""
    return lambda rank: Habit(**(others or {})) if rank.number else Habit(**first)


def on_last(last: dict[str, Any], others: dict[str, Any] | None = None) -> Callable[[Rank], Habit]:
    """One habit on the last rank, another on the rest."""
    return lambda rank: Habit(**last) if rank.last else Habit(**(others or {}))


JOBS: dict[str, Callable[[Rank], Step]] = {
    "ddp.item_both": training(ddp, Shape(), everywhere(item=True, host_ms=2.0)),
    "ddp.one_rank_item": training(ddp, LARGE, on_first({"item": True, "host_ms": 4.0})),
    "ddp.one_rank_reads": training(ddp, Shape(), on_first({"reads": 6})),
    "ddp.straggler": training(ddp, Shape(), on_last({"times": 24}, {"item": True})),
    "ddp.late_loader": training(ddp, Shape(), on_last({"load_ms": 8.0, "item": True}, {"item": True})),
    "ddp.mask_one_rank": training(ddp, LARGE, on_first({"masked": True})),
    "ddp.small_reads": training(ddp, SMALL, everywhere(reads=4)),
    "ddp.both_unequal": training(ddp, LARGE, on_last({"item": True, "host_ms": 8.0}, {"item": True, "host_ms": 3.0})),
    "fsdp2.item_both": training(fsdp2, LARGE, everywhere(item=True, host_ms=3.0)),
    "fsdp2.one_rank_item": training(fsdp2, LARGE, on_first({"item": True, "host_ms": 5.0})),
    "fsdp2.straggler": training(fsdp2, LARGE, on_last({"times": 12}, {"item": True})),
    "ddp.reduced_item": training(ddp, Shape(), everywhere(item=True, reduced=True, host_ms=1.5)),
    "ddp.clip": training(ddp, Shape(), everywhere(clipped=True)),
    "fsdp2.clip": training(fsdp2, Shape(), everywhere(clipped=True)),
    "ddp.uneven_reads": training(ddp, LARGE, on_last({"reads": 3, "times": 4}, {"reads": 1, "load_ms": 2.0})),
    "pipeline.item": pipeline(Shape(), everywhere(item=True, host_ms=0.5)),
    "pipeline.gpipe": scheduled(MIDDLE, everywhere(item=True, host_ms=4.0), "ScheduleGPipe"),
    "pipeline.1f1b": scheduled(MIDDLE, everywhere(item=True, clipped=True, host_ms=3.0), "Schedule1F1B"),
    "resnet.item_last": resnet(on_last({"item": True, "host_ms": 6.0})),
    "resnet.item_both": resnet(everywhere(item=True, host_ms=3.0)),
    "resnet.straggler": resnet(on_last({"times": 10, "item": True}, {"item": True})),
    "resnet.sync_norms": resnet(on_first({"item": True, "host_ms": 4.0}), 64, sync_norms=True),
    "accumulated.item_first": accumulated(on_first({"item": True, "host_ms": 2.0}), LARGE),
    "accumulated.clip": accumulated(everywhere(clipped=True, item=True, host_ms=1.0), LARGE),
    "gathered.ddp": gathered(ddp, MIDDLE, everywhere(host_ms=5.0)),
    "gathered.fsdp2": gathered(fsdp2, MIDDLE, everywhere(host_ms=5.0)),
    "fsdp2.reads_last": training(fsdp2, MIDDLE, on_last({"reads": 3})),
    "fsdp2.loader_item": training(fsdp2, MIDDLE, on_last({"load_ms": 10.0, "item": True}, {"item": True})),
    "ddp.middle_item": training(ddp, MIDDLE, everywhere(item=True, host_ms=4.0)),
    "ddp.item_and_straggler": training(ddp, MIDDLE, on_last({"times": 4}, {"item": True, "host_ms": 8.0})),
    "fsdp2.reads": training(fsdp2, Shape(), everywhere(reads=3)),
}
"""Name → what makes a rank's step."""


def drain(device: str) -> None:
    """Wait until this rank's device has done everything."""
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def turn(step: Step, fixed: bool, steps: int, device: str) -> float:
    """Return the time of the job's step in a turn of so many, ms: that of the slowest rank."""
    import torch
    import torch.distributed as dist

    drain(device)
    dist.barrier()
    began = time.perf_counter()
    for _ in range(steps):
        step(fixed)
    drain(device)
    taken = torch.tensor([(time.perf_counter() - began) / steps * 1e3], device=device)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return float(taken.item())


def turns(step: Step, device: str) -> dict[str, Any]:
    """Both variants in turn: the medians in ms, and the median and spread of how much shorter the fixed one is."""
    for fixed in (False, True):
        turn(step, fixed, 10, device)
    steps = max(5, round(TURN_S * 1e3 / turn(step, False, 10, device)))
    taken: tuple[list[float], list[float]] = ([], [])
    for k in [0, 1, 1, 0] * (ROUNDS // 2):
        taken[k].append(turn(step, bool(k), steps, device))
    ratios = [b / a for a, b in zip(*taken, strict=True)]
    return {
        "as_is": round(statistics.median(taken[0]), 4),
        "fixed": round(statistics.median(taken[1]), 4),
        "ratio": round(statistics.median(ratios), 5),
        "standard_error": round(statistics.stdev(ratios) / len(ratios) ** 0.5, 5),
    }


def one(name: str, rank: Rank, folder: Path) -> dict[str, Any]:
    """Time a job's variants in turn, and record this rank of the one with the syncs."""
    import torch
    import torch.distributed as dist

    import syncscan

    if rank.device == "cuda":
        torch.cuda.set_device(rank.number)
    else:
        torch.set_num_threads(1)
    dist.init_process_group("nccl" if rank.device == "cuda" else "gloo", rank=rank.number, world_size=rank.count)
    torch.manual_seed(SEED)
    step = JOBS[name](rank)
    taken = turns(step, rank.device)
    messages: list[str] = []
    dist.barrier()
    with tempfile.TemporaryDirectory() as out:
        with syncscan.profile(out, name=f"rank{rank.number}", calibrate=20, notify=messages.append) as capture:
            while not capture.done:
                step(False)
                capture.step()
        (path,) = capture.paths
        recorded = gzip.decompress(path.read_bytes()).replace(f"{ROOT}/".encode(), b"")
        (folder / f"rank{rank.number}.json.gz").write_bytes(gzip.compress(recorded, 9, mtime=0))
    dist.barrier()
    dist.destroy_process_group()
    return {**taken, "said": messages}


def free_port() -> int:
    """One that nobody uses now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def start(name: str, folder: Path, count: int, device: str) -> list[subprocess.Popen[str]]:
    """The processes of a job."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, __file__, "one", str(folder), "--only", name, "--device", device]
    return [
        subprocess.Popen(
            [*command, "--ranks", str(count)],
            env={**os.environ, "RANK": str(k), "WORLD_SIZE": str(count), "LOCAL_RANK": str(k)}
            | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(count)
    ]


def record(folder: Path, names: list[str], count: int, device: str) -> None:
    """One job after the other; what they took goes into `truth.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = folder / "truth.json"
    result = json.loads(truth.read_text()) if truth.exists() else {}
    for name in names:
        began = time.perf_counter()
        ended = [
            (*process.communicate(timeout=180), process.returncode)
            for process in start(name, folder / name, count, device)
        ]
        messages = [line for out, _, _ in ended for line in out.splitlines() if line.startswith("{")]
        if len(messages) < count:
            why = [error.strip().splitlines()[-1:] for _, error, code in ended if code]
            print(f"{name} failed: {why}", flush=True)
            continue
        result[name] = json.loads(messages[0])
        ms = f"{result[name]['as_is']:.3f} -> {result[name]['fixed']:.3f} ms (ratio {result[name]['ratio']:.4f})"
        print(f"{name}: {ms}, in {time.perf_counter() - began:.0f} s {result[name]['said'] or ''}", flush=True)
        truth.write_text(json.dumps(result, indent=1) + "\n")


def table(folder: Path) -> None:
    """Return the table of the job's projected gain without all syncs, the measured one, and the most by one trace
    alone.
    """
    from syncscan.fleet.join import join
    from syncscan.fleet.worker import read_rank

    print("| job | step, ms | one rank alone | the job | range | measured | inside | delays the others |")
    print("|---|---:|---:|---:|---|---:|---|---|")
    errors = []
    for name, times in json.loads((folder / "truth.json").read_text()).items():
        fleet = join([read_rank(str(path)) for path in sorted((folder / name).glob("rank*.json.gz"))])
        step = fleet.baseline_us or fleet.observed_us
        ranks = [rank.of for rank in fleet.ranks]
        alone = max((of.recoverable_us or 0.0) / (of.unprofiled_us or of.observed_us) for of in ranks)
        gain = (fleet.recoverable_us or 0.0) / step
        low, high = (us / step for us in fleet.recoverable_range_us or (0.0, 0.0))
        measured, spread = 1 - times["ratio"], times["standard_error"]
        errors += [abs(gain - measured)] if spread < KNOWN else []
        inside = "yes" if low - 2 * spread <= measured <= high + 2 * spread else "NO"
        late = statistics.mode([(one.rank, one.cause.value) for one in fleet.lateness]) if fleet.lateness else ()
        held = f"rank {late[0]}: {late[1]}" if late else "nobody"
        print(
            f"| `{name}` | {step / 1e3:.2f} | {alone:.1%} | {gain:.1%} | {low:.1%} to {high:.1%} "
            f"| {measured:.1%} ± {spread:.1%} | {inside} | {held} |"
        )
    if errors:
        text = f"median error {statistics.median(errors):.2%}, worst {max(errors):.2%}"
        print(f"of the {len(errors)} measured to {KNOWN:.1%}: {text}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "one", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=JOBS, default=[*JOBS], metavar="NAME")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    if options.action == "table":
        table(options.folder)
    elif options.action == "record":
        record(options.folder, options.only, options.ranks, options.device)
    elif options.action == "one":
        try:
            print(
                json.dumps(
                    one(options.only[0], Rank(int(os.environ["RANK"]), options.ranks, options.device), options.folder)
                )
            )
        except Exception:
            traceback.print_exc()
            sys.exit(1)


if __name__ == "__main__":
    main()
