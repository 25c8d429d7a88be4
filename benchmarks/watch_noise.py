"""Does a watch alarm nothing in a day of a real job's noise? `python -m benchmarks.watch_noise record|simulate FILE`.

`record` runs a job on a GPU under a watch, and stores each sample's line and each step's end: a training with a loader
of two processes, whose loss is read, that evaluates now and then and saves checkpoints; or ranks of such a job, under
torchrun; or, with `--program`, one of another kind, with which no setting of the alarms was chosen. `simulate` draws
intervals of such a recording at random, with their samples and steps, until they make a day, and counts the alarms.
Then a new wait takes a part of each step from some step on, and it prints how many steps later that was alarmed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncscan.watching.alarm import Alarms, Usual
from syncscan.watching.tally import Key
from syncscan.watching.watch import DRAIN_S

Row = tuple[int, Key | None, int]
"""When a sample was taken (ns), the line that waited there, periods."""
SECOND = 1_000_000_000
INTERVAL_S = 5.0
"""Length of the intervals that are drawn."""
NEW: Key = ("new.py", 1, "step")


@dataclass(frozen=True)
class Noise:
    """A recording: samples and ends of steps, in order."""

    rows: list[Row]
    ends: list[int]

    def until(self, seconds: float) -> Noise:
        """Return its first seconds."""
        last = self.ends[0] + int(seconds * SECOND)
        return Noise([row for row in self.rows if row[0] < last], [end for end in self.ends if end < last])

    def intervals(self, seconds: float = INTERVAL_S) -> list[Noise]:
        """Return it in intervals of equal length, each from 0 on."""
        length, first = int(seconds * SECOND), self.ends[0]
        count = (self.ends[-1] - first) // length
        parts = [Noise([], []) for _ in range(count)]
        for at, key, periods in self.rows:
            k, inside = divmod(at - first, length)
            if 0 <= k < count:
                parts[k].rows.append((inside, key, periods))
        for end in self.ends:
            k, inside = divmod(end - first, length)
            if k < count:
                parts[k].ends.append(inside)
        return parts


def load(path: Path) -> list[Noise]:
    """Return the recordings of a file."""
    with gzip.open(path, "rt") as file:
        stored = json.load(file)
    return [of_stored(recording) for recording in stored]


def of_stored(recording: dict[str, Any]) -> Noise:
    """Return a recording as it was stored: times as differences in µs, lines by number."""
    keys = [tuple(key) for key in recording["keys"]]
    rows, at = [], 0
    for step, key, periods in recording["rows"]:
        at += step * 1000
        rows.append((at, keys[key] if key >= 0 else None, periods))
    ends, end = [], 0
    for step in recording["ends"]:
        end += step * 1000
        ends.append(end)
    return Noise(rows, ends)


def stored(ticks: list[Any], ends: list[int]) -> dict[str, Any]:
    """Return samples of `Recorded` and ends of steps (ns) as they are stored."""
    first = min(ends[0], ticks[0][0])
    keys: dict[tuple[str, int, str], int] = {}
    rows, last = [], 0
    for at, periods, _late, ran, file, line, kind in ticks:
        waits = kind == "device" or (kind == "device?" and not ran)
        key = keys.setdefault((Path(file).name, line, ""), len(keys)) if waits else -1
        now = (at - first) // 1000
        rows.append((now - last, key, periods))
        last = now
    micros = [(end - first) // 1000 for end in ends]
    steps = [b - a for a, b in zip([0, *micros], micros, strict=False)]
    return {"keys": list(keys), "rows": rows, "ends": steps}


def days(noise: list[Noise], seconds: float, draw: random.Random) -> Iterator[tuple[list[Row], list[int]]]:
    """Yield what a watch counts at a time of one job's drawn intervals: samples, and the ends of steps."""
    parts = [part for recording in noise for part in recording.intervals()]
    length, at = int(INTERVAL_S * SECOND), 0
    while at < seconds * SECOND:
        part = draw.choice(parts)
        for k in range(int(INTERVAL_S / DRAIN_S)):
            low, high = int(k * DRAIN_S * SECOND), int((k + 1) * DRAIN_S * SECOND)
            yield (
                [(at + t, key, periods) for t, key, periods in part.rows if low <= t < high],
                [at + t for t in part.ends if low <= t < high],
            )
        at += length


def alarms_of(noise: list[Noise], hours: float, seed: int) -> list[tuple[float, str]]:
    """Return the alarms of some hours of a recording: when, in hours, and what."""
    alarms, usual = Alarms(), Usual()
    result = []
    for number, (rows, ends) in enumerate(days(noise, hours * 3600, random.Random(seed))):
        for key, before, now in alarms.add(*usual.add(rows, ends)):
            result.append((number * DRAIN_S / 3600, f"{key[0]}:{key[1]} {before:.3f} → {now:.3f}"))
    return result


def steps_to_alarm(noise: list[Noise], share: float, after: int, most: int, seed: int) -> int | None:
    """Return how many steps after a new wait began it was alarmed; None for not within `most`.

    Args:
        noise: recordings.
        share: part of each step that the new wait takes; the rest keeps its length.
        after: the step at which it begins.
        most: steps to look for.
        seed: of what is drawn.
    """
    draw = random.Random(seed)
    alarms, usual = Alarms(), Usual()
    count, began = 0, None
    for rows, ends in days(noise, 1e9, draw):
        changed = rows
        if count >= after:
            began = count if began is None else began
            changed = [(at, NEW if draw.random() < share else key, periods) for at, key, periods in rows]
        count += len(ends)
        grown = alarms.add(*usual.add(changed, ends))
        if began is not None and any(key == NEW for key, _, _ in grown):
            return count - began
        if began is not None and count - began > most:
            return None
    return None


def job(seconds: float, slow_from: float, out: Path, ranks: bool) -> dict[str, Any]:
    """Train under a watch, with a loader, an evaluation and checkpoints, and return the recording."""
    import torch

    from benchmarks.watched_programs import Recorded

    rank = int(os.environ.get("LOCAL_RANK", "0"))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if ranks and device == "cuda":
        torch.cuda.set_device(rank)
    if ranks:
        torch.distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    blocks = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(8)]
    model: Any = torch.nn.Sequential(*blocks).to(device)
    if ranks:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.utils.data.TensorDataset(torch.randn(50_000, 1024))
    loader = torch.utils.data.DataLoader(data, batch_size=512, shuffle=True, num_workers=2, persistent_workers=True)
    ends: list[int] = []
    out.mkdir(parents=True, exist_ok=True)
    watch = Recorded(out, name="train", interval=2.0, hook=False).start()
    began = time.monotonic()
    over = torch.zeros((), device=device)
    while not over.item():
        for (x,) in loader:
            loss = model(x.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if loss.item() != loss.item():
                raise SystemExit("The loss is no number.")
            if rank == 1 and time.monotonic() - began > slow_from:
                until = time.monotonic() + 0.01
                while time.monotonic() < until:
                    pass
            watch.step()
            ends.append(time.monotonic_ns())
            if len(ends) % 500 == 0:
                with torch.no_grad():
                    for _ in range(20):
                        model(x.to(device)).mean().item()
                torch.save(model.state_dict(), out / f"checkpoint{rank}.pt")
            over.fill_(time.monotonic() - began > seconds)
            if ranks:
                torch.distributed.all_reduce(over)
            if len(ends) % 20 == 0 and over.item():
                break
    watch.stop()
    if ranks:
        torch.distributed.destroy_process_group()
    return stored(watch.ticks, ends)


def generation() -> Callable[[int], None]:
    """Return a step that writes texts of varying length, and reads after each token whether all have ended."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer = torch.nn.TransformerEncoderLayer(512, 8, 1024, dropout=0.0, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(device).eval()
    embedding = torch.nn.Embedding(64, 512).to(device)
    texts: list[list[int]] = []

    @torch.no_grad()
    def step(number: int) -> None:
        tokens = torch.randint(0, 64, (32, random.choice((16, 32, 64, 128))), device=device)
        ended = torch.zeros(32, dtype=torch.bool, device=device)
        for _ in range(16):
            scores = model(embedding(tokens))[:, -1] @ embedding.weight.T
            following = torch.multinomial((scores / 8).softmax(-1), 1)
            ended |= following[:, 0] < 16
            tokens = torch.cat([tokens, following], 1)
            if ended.all():
                break
        texts.extend(tokens.tolist())
        if len(texts) > 20_000:
            texts.clear()

    return step


def reinforcement() -> Callable[[int], None]:
    """Return a step that acts many times with a small model, and learns from a memory that fills up."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    actor = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
    optimizer = torch.optim.AdamW(actor.parameters())
    memory: list[tuple[Any, int, float]] = []

    def step(number: int) -> None:
        state = torch.randn(64)
        for _ in range(random.randint(4, 12)):
            with torch.no_grad():
                action = actor(state.to(device)).argmax().item()
            reward = sum(float(value) for value in state[:8]) * (action + 1)
            memory.append((state, int(action), reward))
            state = torch.tanh(state + 0.1 * torch.randn(64))
        del memory[:-20_000]
        if number % 4 == 0:
            batch = random.choices(memory, k=256)
            states = torch.stack([row[0] for row in batch]).to(device)
            chosen = actor(states).gather(1, torch.tensor([[row[1]] for row in batch], device=device))
            loss = (chosen[:, 0] - torch.tensor([row[2] for row in batch], device=device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(actor.parameters(), 1.0, error_if_nonfinite=True)
            optimizer.step()
            if number % 200 == 0:
                print(f"loss {loss.item():.3f}", flush=True)

    return step


def adversarial() -> Callable[[int], None]:
    """Return a step with two models and two optimizers, whose pictures are drawn and scored now and then."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"

    def convolutions(into: int, out: int) -> Any:
        rows = [torch.nn.Conv2d(64 if k else into, 64, 3, padding=1) for k in range(5)]
        parts = [part for row in rows for part in (row, torch.nn.LeakyReLU(0.2))]
        return torch.nn.Sequential(*parts, torch.nn.Conv2d(64, out, 3, padding=1)).to(device)

    generator, critic = convolutions(8, 3), convolutions(3, 1)
    optimizers = [torch.optim.Adam(model.parameters(), 1e-4) for model in (generator, critic)]
    history: list[list[float]] = []

    def step(number: int) -> None:
        size = random.choice((32, 32, 48, 64))
        real = torch.rand(16, 3, size, size, device=device)
        fake = generator(torch.randn(16, 8, size, size, device=device))
        loss = critic(fake.detach()).mean() - critic(real).mean()
        optimizers[1].zero_grad()
        loss.backward()
        optimizers[1].step()
        loss_generator = -critic(fake).mean()
        optimizers[0].zero_grad()
        loss_generator.backward()
        optimizers[0].step()
        if number % 3 == 0:
            history.append([loss.item(), loss_generator.item()])
        mask = (fake > 0).float().mean(dim=(1, 2, 3)) > 0.5
        if mask.any():
            history.append(fake[mask].mean(dim=(1, 2, 3)).tolist())
        if number % 300 == 0:
            pictures = fake.detach().cpu().numpy()
            history[:] = [[float(pictures.mean())]]

    return step


PROGRAMS = {make.__name__: make for make in (generation, reinforcement, adversarial)}


def recorded(program: str, seconds: float) -> dict[str, Any]:
    """Run a program for some seconds under a watch, and return the recording."""
    from benchmarks.watched_programs import Recorded

    random.seed(0)
    step, ends = PROGRAMS[program](), list[int]()
    for number in range(20):
        step(number)
    with tempfile.TemporaryDirectory() as folder:
        watch = Recorded(folder, name=program, interval=2.0, hook=False).start()
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            step(len(ends))
            watch.step()
            ends.append(time.monotonic_ns())
        watch.stop()
    return stored(watch.ticks, ends)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "simulate"])
    parser.add_argument("file", type=Path, help="of the recording, *.json.gz; ranks put their number before it")
    parser.add_argument("--seconds", type=float, default=60.0, help="to record")
    parser.add_argument("--program", choices=list(PROGRAMS), help="record this program instead")
    parser.add_argument("--ranks", action="store_true", help="this is a process of torchrun's")
    parser.add_argument("--slow-from", type=float, default=1e9, help="seconds after which rank 1 takes 10 ms longer")
    parser.add_argument("--out", type=Path, help="folder of the watch's file")
    parser.add_argument("--hours", type=float, default=24.0, help="to simulate")
    parser.add_argument("--days", type=int, default=1, help="how often those hours are simulated")
    parser.add_argument("--until", type=float, default=1e9, help="seconds of the recording that are drawn from")
    parser.add_argument("--share", type=float, nargs="+", default=[0.1, 0.25, 0.5], help="of a step, of the new wait")
    arguments = parser.parse_args()
    if arguments.what == "record":
        with tempfile.TemporaryDirectory() as folder:
            out = arguments.out or Path(folder)
            if arguments.program:
                recording = recorded(arguments.program, arguments.seconds)
            else:
                recording = job(arguments.seconds, arguments.slow_from, out, arguments.ranks)
        rank = os.environ.get("LOCAL_RANK", "") if arguments.ranks else ""
        with gzip.open(arguments.file.with_name(f"{rank}{arguments.file.name}"), "wt") as file:
            json.dump([recording], file)
        print(f"{len(recording['ends'])} steps and {len(recording['rows'])} samples", flush=True)
        return
    noise = [recording.until(arguments.until) for recording in load(arguments.file)]
    for day in range(arguments.days):
        alarms = alarms_of(noise, arguments.hours, day)
        print(f"{arguments.hours:g} hours: {len(alarms)} alarms", *(f"  at {at:.2f} h: {what}" for at, what in alarms))
    for share in arguments.share:
        steps = [steps_to_alarm(noise, share, 5000, 5000, seed) for seed in range(10)]
        print(f"a new wait of {share:.0%} of the step from step 5,000 on is alarmed after {steps} steps", flush=True)


if __name__ == "__main__":
    main()
