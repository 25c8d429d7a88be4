"""Measure the real cost of stalls of the host that are no syncs; records the truth, on a GPU or here.

    python -m benchmarks.host_stalls record DIR [--only NAME…] [--device cpu]   times each step with its habit and with
                                                                               the fix, records it with the habit
    python -m benchmarks.host_stalls table DIR                                 anywhere: projects from the recordings

Each program runs in a process of its own. Both variants are timed in turn (A B B A), nothing else on, the device
drained at both ends; the median of the rounds counts. Then the one with the habit is captured as
`syncscan profile` would, with its steps sampled. What a program needs and isn't
installed is said, and the others go on.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import io
import json
import logging
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Step = Callable[[], object]
Beside = Callable[[], AbstractContextManager[object]]
ROOT = Path(__file__).parents[1]
TURN_S, ROUNDS, SAMPLE_S = 0.5, 2, 3.0
SEED = 7


@dataclass(frozen=True)
class Variant:
    """A step, and what goes on beside it while it runs."""

    step: Step
    beside: Beside = nullcontext


@dataclass(frozen=True)
class Program:
    """The habit's rule, and what makes the step with it and the one without, on this device."""

    rule: str
    make: Callable[[str], tuple[Variant, Variant]]


def drain(device: str) -> None:
    """Wait until the device has done everything."""
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def network(device: str, layers: int = 6, width: int = 256) -> Any:
    """Blocks as of a transformer without its attention: many kernels of some µs."""
    from torch import nn

    parts = [p for _ in range(layers) for p in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())]
    return nn.Sequential(*parts).to(device)


def training(device: str, net: Any = None, *, layers: int = 6, **options: Any) -> Step:
    """A plain training step, of a network of its own without one; the options are the optimizer's."""
    import torch

    net, x = net or network(device, layers), torch.randn(64, 256, device=device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, **options)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x), x).backward()
        optimizer.step()

    return step


def both(first: Step, second: Step) -> Step:
    """One after the other."""

    def step() -> None:
        first()
        second()

    return step


# Another thread holds the GIL


def count_words(until: Callable[[], bool], share: float) -> None:
    """Plain Python for a share of the time, in pieces of some ms, as a thread that prepares or reports would."""
    counts: dict[str, int] = {}
    words = [f"word{k % 997}" for k in range(5000)]
    while not until():
        began = time.perf_counter()
        for word in words:
            counts[word] = counts.get(word, 0) + len(word)
        time.sleep((time.perf_counter() - began) * (1 - share) / share)


def parse_records(until: Callable[[], bool], share: float) -> None:
    """Parse in a C function that holds the lock until it is done."""
    text = json.dumps([{"name": f"record {k}", "value": k} for k in range(20_000)])
    while not until():
        began = time.perf_counter()
        json.loads(text)
        time.sleep((time.perf_counter() - began) * (1 - share) / share)


def in_thread(work: Callable[[Callable[[], bool], float], None], share: float) -> Beside:
    """Have a thread of this process do it."""

    @contextmanager
    def beside() -> Iterator[None]:
        over = threading.Event()
        thread = threading.Thread(target=work, args=(over.is_set, share), name="reporter", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    return beside


def _for_ever(work: Callable[[Callable[[], bool], float], None], share: float) -> None:
    work(lambda: False, share)


def in_process(work: Callable[[Callable[[], bool], float], None], share: float) -> Beside:
    """Have another process do it."""

    @contextmanager
    def beside() -> Iterator[None]:
        process = multiprocessing.get_context("spawn").Process(target=_for_ever, args=(work, share), daemon=True)
        process.start()
        time.sleep(1.0)  # until it has started and works
        try:
            yield
        finally:
            process.terminate()
            process.join()

    return beside


def held(work: Callable[[Callable[[], bool], float], None], share: float) -> Callable[[str], tuple[Variant, Variant]]:
    """A training step beside such work."""

    def make(device: str) -> tuple[Variant, Variant]:
        step = training(device)
        return Variant(step, in_thread(work, share)), Variant(step, in_process(work, share))

    return make


# Autocast


def autocast_inference(device: str) -> tuple[Variant, Variant]:
    """Weights of fp32 are cast at every call; of bf16 never."""
    import torch

    net, x = network(device, 24), torch.randn(64, 256, device=device)
    half, y = network(device, 24).to(torch.bfloat16), x.to(torch.bfloat16)

    @torch.inference_mode()
    def casting() -> None:
        with torch.autocast(device, torch.bfloat16):
            net(x)

    @torch.inference_mode()
    def cast() -> None:
        half(y)

    return Variant(casting), Variant(cast)


def autocast_frozen(device: str) -> tuple[Variant, Variant]:
    """A frozen part in fp32, and a head that is trained."""
    import torch

    def step(frozen: Any) -> Step:
        head, x = network(device, 2), torch.randn(64, 256, device=device)
        optimizer = torch.optim.AdamW(head.parameters(), lr=1e-4)

        def train() -> None:
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16):
                loss = torch.nn.functional.mse_loss(head(frozen(x)), x)
            loss.backward()
            optimizer.step()

        return train

    frozen = network(device, 16).requires_grad_(False)
    parts = network(device, 16).requires_grad_(False)
    cast = torch.nn.Sequential(*(m.to(torch.bfloat16) if isinstance(m, torch.nn.Linear) else m for m in parts))
    return Variant(step(frozen)), Variant(step(cast))


def autocast_accumulated(device: str) -> tuple[Variant, Variant]:
    """Four passes a step, each in a region of its own; and all in one, with the backward passes outside."""
    import torch

    def step(*, once: bool) -> Step:
        net, x = network(device, 12), torch.randn(64, 256, device=device)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

        def train() -> None:
            optimizer.zero_grad()
            with torch.autocast(device, torch.bfloat16, enabled=once):
                for _ in range(4):
                    with torch.autocast(device, torch.bfloat16):
                        loss = torch.nn.functional.mse_loss(net(x), x)
                    with torch.autocast(device, enabled=False):
                        loss.backward()
            optimizer.step()

        return train

    return Variant(step(once=False)), Variant(step(once=True))


# Fresh memory


def first_touch(device: str) -> tuple[Variant, Variant]:
    """A batch of 38 MB is put together on the host and pooled there; anew, or in a buffer that stays."""
    import torch

    samples = [torch.rand(3, 224, 224) for _ in range(64)]
    batch = torch.empty(64, 3, 224, 224)
    train = training(device, layers=2)
    pool = torch.nn.AdaptiveAvgPool2d(4)

    def pooled(images: Any) -> None:
        pool(images[:, :, ::8, ::8]).to(device)

    return (
        Variant(both(lambda: pooled(torch.stack(samples)), train)),
        Variant(both(lambda: pooled(torch.stack(samples, out=batch)), train)),
    )


def first_touch_arrays(device: str) -> tuple[Variant, Variant]:
    """Arrays of numpy's that are scaled: three fresh buffers of 40 MB, or one that stays."""
    import numpy as np

    image = np.random.default_rng(SEED).integers(0, 255, (40, 512, 512), dtype=np.uint8)
    stored = np.empty(image.shape, np.float32)
    train = training(device, layers=2)

    def fresh() -> None:
        ((image.astype(np.float32) - 127.0) / 128.0).sum()

    def again() -> None:
        np.copyto(stored, image)
        np.subtract(stored, np.float32(127.0), out=stored)
        np.divide(stored, np.float32(128.0), out=stored)
        stored.sum()

    return Variant(both(fresh, train)), Variant(both(again, train))


# What the step's thread does itself


def progress_bar(device: str) -> tuple[Variant, Variant]:
    """A bar that is drawn at every step, with a value."""
    import tqdm

    step, bar = training(device), tqdm.tqdm(file=io.StringIO(), mininterval=0)
    seen = iter(range(10**9))

    def shown() -> None:
        step()
        bar.update()
        bar.set_postfix(loss=next(seen) / 7, rate=0.1)

    return Variant(shown), Variant(step)


def logged(device: str) -> tuple[Variant, Variant]:
    """Forty lines a step, into a file."""
    step, log = training(device), logging.getLogger("stalls")
    handler = logging.FileHandler(os.devnull)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    log.addHandler(handler)
    log.propagate = False

    def telling() -> None:
        step()
        log.setLevel(logging.INFO)
        for k in range(40):
            log.info("layer %d: norm %.4f, share %s", k, k / 3, [k, k + 1])

    def quiet() -> None:
        step()
        log.setLevel(logging.WARNING)
        for k in range(40):
            log.info("layer %d: norm %.4f, share %s", k, k / 3, [k, k + 1])

    return Variant(telling), Variant(quiet)


def tokenized(device: str) -> tuple[Variant, Variant]:
    """Sixteen texts a step; or their numbers, made ahead."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"word{k}": k for k in range(1000)}
    built = Tokenizer(models.WordLevel({**words, "[UNK]": 1000, "[PAD]": 1001}, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=built, pad_token="[PAD]", unk_token="[UNK]")
    texts = [" ".join(f"word{(k * n) % 1000}" for k in range(128 + n)) for n in range(16)]
    train = training(device)
    ahead = tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]

    def tokenize() -> None:
        tokenizer(texts, padding=True, return_tensors="pt")["input_ids"].to(device)

    return Variant(both(tokenize, train)), Variant(both(lambda: ahead.to(device), train))


def collated(device: str) -> tuple[Variant, Variant]:
    """Two hundred samples that are put together on the step's thread, or were ahead."""
    import torch
    from torch.utils.data import default_collate

    samples = [{"x": torch.rand(64), "y": k, "name": str(k)} for k in range(200)]
    ahead, train = default_collate(samples), training(device)
    return (
        Variant(both(lambda: default_collate(samples)["x"].to(device), train)),
        Variant(both(lambda: ahead["x"].to(device), train)),
    )


def collected(device: str) -> tuple[Variant, Variant]:
    """A full collection in every step, of a program with some ten thousand objects."""
    step, stored = training(device), [{"k": [k]} for k in range(10_000)]

    def collecting() -> None:
        step()
        gc.collect()

    return Variant(collecting), Variant(both(step, lambda: len(stored)))


def zeroed(device: str) -> tuple[Variant, Variant]:
    """Gradients that are filled with zeros, or let go."""
    import torch

    def step(*, to_none: bool) -> Step:
        net, x = network(device, 16), torch.randn(64, 256, device=device)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

        def train() -> None:
            optimizer.zero_grad(set_to_none=to_none)
            torch.nn.functional.mse_loss(net(x), x).backward()
            optimizer.step()

        return train

    return Variant(step(to_none=False)), Variant(step(to_none=True))


def looping_optimizer(device: str) -> tuple[Variant, Variant]:
    """AdamW one parameter after the other, or over lists of them."""
    return Variant(training(device, layers=12, foreach=False)), Variant(training(device, layers=12, foreach=True))


def looping_average(device: str) -> tuple[Variant, Variant]:
    """An average of the weights, kept in a loop over them or over the list."""
    import torch

    net = network(device, 24)
    averaged = [p.detach() for p in net.parameters()]
    mean = [p.clone() for p in averaged]
    train = training(device, net)

    def loop() -> None:
        for stored, now in zip(mean, averaged, strict=True):
            stored.mul_(0.999).add_(now, alpha=0.001)

    return Variant(both(train, loop)), Variant(both(train, lambda: torch._foreach_lerp_(mean, averaged, 0.001)))


PROGRAMS: dict[str, Program] = {
    "lock_python": Program("lock-held", held(count_words, 0.5)),
    "lock_busy": Program("lock-held", held(count_words, 0.95)),
    "lock_parser": Program("lock-held", held(parse_records, 0.4)),
    "autocast_inference": Program("autocast-casts", autocast_inference),
    "autocast_frozen": Program("autocast-casts", autocast_frozen),
    "autocast_accumulated": Program("autocast-casts", autocast_accumulated),
    "first_touch": Program("first-touch", first_touch),
    "first_touch_arrays": Program("first-touch", first_touch_arrays),
    "progress_bar": Program("side-work", progress_bar),
    "logging": Program("side-work", logged),
    "tokenise": Program("side-work", tokenized),
    "collate": Program("side-work", collated),
    "gc": Program("garbage-collection", collected),
    "zero_grad": Program("gradients-zeroed", zeroed),
    "optimizer": Program("optimizer-loop", looping_optimizer),
    "average": Program("parameter-loop", looping_average),
}


def timed(variant: Variant, steps: int, device: str) -> float:
    """Return the mean time of a step, ms, without the first tenth."""
    with variant.beside():
        for _ in range(max(1, steps // 10)):
            variant.step()
        drain(device)
        began = time.perf_counter()
        for _ in range(steps):
            variant.step()
        drain(device)
        return (time.perf_counter() - began) / steps * 1e3


def turns(habit: Variant, fixed: Variant, device: str) -> dict[str, Any]:
    """The median time of a step of either, taken in turn, in ms."""
    steps = [max(3, round(TURN_S * 1e3 / timed(variant, 3, device))) for variant in (habit, fixed)]
    taken: tuple[list[float], list[float]] = ([], [])
    for k in [0, 1, 1, 0] * ROUNDS:
        taken[k].append(timed((habit, fixed)[k], steps[k], device))
    return {
        "habit": round(statistics.median(taken[0]), 4),
        "fixed": round(statistics.median(taken[1]), 4),
        "habit_turns": [round(ms, 4) for ms in taken[0]],
        "fixed_turns": [round(ms, 4) for ms in taken[1]],
    }


def one(name: str, folder: Path, device: str) -> dict[str, Any]:
    """Time a program's variants in turn, and record the one with the habit."""
    import torch

    import syncscan

    torch.manual_seed(SEED)
    if device == "cpu":
        torch.set_num_threads(1)  # a step's thread is what is looked at
    habit, fixed = PROGRAMS[name].make(device)
    for variant in (habit, fixed):
        timed(variant, 10, device)
    taken: dict[str, Any] = {"device": torch.cuda.get_device_name() if device != "cpu" else "cpu"}
    taken.update(turns(habit, fixed, device))
    messages: list[str] = []
    options: dict[str, Any] = {"calibrate": 30, "active": 2, "sample": SAMPLE_S, "notify": messages.append}
    with tempfile.TemporaryDirectory() as out, syncscan.profile(out, name=name, **options) as capture, habit.beside():
        while not capture.done:
            habit.step()
            capture.step()
        (path,) = capture.paths
        recorded = gzip.decompress(path.read_bytes()).replace(f"{ROOT}/".encode(), b"")
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(recorded, 9, mtime=0))
    return {**taken, "said": messages}


def record(folder: Path, names: list[str], device: str) -> None:
    """Each program in a process of its own; what they took goes into `truth.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = folder / "truth.json"
    result = json.loads(truth.read_text()) if truth.exists() else {}
    for name in names:
        began = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.host_stalls", "one", str(folder), "--only", name]
        ended = subprocess.run([*command, "--device", device], capture_output=True, text=True)
        messages = [line for line in ended.stdout.splitlines() if line.startswith("{")]
        if not messages:
            why = ended.stderr.strip().splitlines()
            print(f"{name} failed: {why[-1] if why else ended.returncode}", flush=True)
            continue
        result[name] = json.loads(messages[-1])
        ms = f"{result[name]['habit']:.3f} -> {result[name]['fixed']:.3f} ms"
        print(f"{name}: {ms}, in {time.perf_counter() - began:.0f} s {result[name]['said'] or ''}", flush=True)
        truth.write_text(json.dumps(result, indent=1) + "\n")


def table(folder: Path) -> None:
    """Return the table of each habit's projected gain beside the measured one, as fractions of the step."""
    from syncscan import api

    print("| program | step | bound | projected | by | measured | inside |\n|---|---|---|---|---|---|---|")
    for name, times in json.loads((folder / "truth.json").read_text()).items():
        analysis = api.analyze(folder / f"{name}.json.gz")
        step_us = analysis.step.unprofiled_us or analysis.step.observed_us
        measured = 1 - times["fixed"] / times["habit"]
        gains = [h for h in analysis.habits if h.rule == PROGRAMS[name].rule and h.basis]
        text, basis, inside = "not said", "", ""
        if gains:
            low, high = (sum((g.recoverable_range_us or (0.0, 0.0))[k] for g in gains) / step_us for k in (0, 1))
            text = f"{sum(g.recoverable_us or 0.0 for g in gains) / step_us:.1%} ({low:.1%} to {high:.1%})"
            basis, inside = gains[0].basis.value if gains[0].basis else "", "yes" if low <= measured <= high else "NO"
        bound = analysis.step.bound.value
        print(f"| `{name}` | {step_us / 1e3:.2f} | {bound} | {text} | {basis} | {measured:.1%} | {inside} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "one", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=[*PROGRAMS], metavar="NAME")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    if options.action == "table":
        table(options.folder)
    elif options.action == "record":
        record(options.folder, options.only, options.device)
    else:
        warnings.filterwarnings("ignore")
        try:
            print(json.dumps(one(options.only[0], options.folder, options.device)))
        except Exception:
            traceback.print_exc()
            sys.exit(1)


if __name__ == "__main__":
    main()
