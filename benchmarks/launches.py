"""Measure what a CUDA graph or a compile saves of a step that its launches bound; records the truth on a GPU.

    python -m benchmarks.launches record DIR [--only NAME…]   times each step as it is and mended, records it as it is
    python -m benchmarks.launches table DIR                   anywhere: projects from the recordings, prints a table

Both variants live in one process and are timed in turn (A B B A), each time some hundred steps with the device drained
at both ends; the median of the rounds counts. `graph` holds the whole step in one CUDA graph, `compile` is what
`torch.compile(mode="reduce-overhead")` makes of the network. The loops of trainers run as their users write them.
The recordings in sample_traces/launches, to which tests/habits/test_measured_launches.py holds projections, are of

    python -m benchmarks.launches record sample_traces/launches --only transformer mlp_logged denoising
    python -m benchmarks.launches record sample_traces/launches --only lightning_mlp trainer vision
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[[int, Any], float]
"""Runs so many steps, with a capture or None, and tells what a step took in s."""
ROUNDS, STEPS, WARM = 3, 60, 15
ROOT = Path(__file__).parents[1]
SETTLED = 20
"""Steps of a trainer's loop before its time is taken."""


def loop(step: Callable[[], None]) -> Run:
    """A loop of the program's own."""
    import torch

    def run(steps: int, capture: Any) -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            step()
            if capture is not None:
                capture.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / steps

    return run


def graphed(step: Callable[[], None]) -> Callable[[], None]:
    """The whole step as one CUDA graph."""
    import torch

    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(5):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def compiled(network: Any) -> Any:
    """The network as `torch.compile` makes it for few launches."""
    import torch

    return torch.compile(network, mode="reduce-overhead")


def training(network: Any, example: Any, target: Any, loss: Any, *, capturable: bool = False) -> Callable[[], None]:
    """A plain training step of this network."""
    import torch

    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, capturable=capturable)

    def step() -> None:
        optimizer.zero_grad()
        loss(network(example), target).backward()
        optimizer.step()

    return step


def _encoder() -> tuple[Callable[[], Any], Any, Any]:
    """Six encoder layers, 16 sequences of 128, kernels of some µs: what makes the network, its input, its loss."""
    import torch
    from torch import nn

    def network() -> Any:
        layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, dropout=0.0)
        return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()

    return network, torch.randn(16, 128, 256, device="cuda"), nn.functional.mse_loss


def transformer() -> dict[str, Run]:
    """A transformer in training, and its whole step as one graph."""
    network, x, loss = _encoder()
    return {
        "eager": loop(training(network(), x, x, loss)),
        "graph": loop(graphed(training(network(), x, x, loss, capturable=True))),
    }


def transformer_compiled() -> dict[str, Run]:
    """Build the network, compiled; a process that held both kinds of graph crashed, without syncscan too."""
    network, x, loss = _encoder()
    return {
        "eager": loop(training(network(), x, x, loss)),
        "compile": loop(training(compiled(network()), x, x, loss)),
    }


def mlp_logged() -> dict[str, Run]:
    """A small network whose loss is read at every step: a wait stands between two steps, none within."""
    import torch
    from torch import nn

    def network() -> Any:
        layers = [part for _ in range(24) for part in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())]
        return nn.Sequential(*layers).cuda()

    x = torch.randn(64, 256, device="cuda")

    def logged(net: Any) -> Callable[[], None]:
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

        def step() -> None:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), x)
            loss.backward()
            optimizer.step()
            loss.item()

        return step

    return {"eager": loop(logged(network())), "compile": loop(logged(compiled(network())))}


def denoising() -> dict[str, Run]:
    """Sampling: twenty passes of a convolutional network, without gradients."""
    import torch
    from torch import nn

    def network() -> Any:
        parts = [p for _ in range(8) for p in (nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(8, 32), nn.SiLU())]
        return nn.Sequential(*parts).cuda().half()

    x = torch.randn(2, 32, 32, 32, device="cuda", dtype=torch.half)

    def sampling(net: Any) -> Callable[[], None]:
        @torch.no_grad()
        def step() -> None:
            y = x
            for k in range(20):
                y = y - 0.1 * net(y).clone() * (1 - k / 20)

        return step

    return {
        "eager": loop(sampling(network())),
        "graph": loop(graphed(sampling(network()))),
        "compile": loop(sampling(compiled(network()))),
    }


def vision() -> dict[str, Run]:
    """A small vision transformer of timm in training."""
    import timm
    import torch

    def network() -> Any:
        return timm.create_model("vit_tiny_patch16_224", num_classes=10).cuda()

    x, target = torch.randn(16, 3, 224, 224, device="cuda"), torch.randint(10, (16,), device="cuda")
    loss = torch.nn.functional.cross_entropy
    return {
        "eager": loop(training(network(), x, target, loss)),
        "compile": loop(training(compiled(network()), x, target, loss)),
    }


def trainer() -> dict[str, Run]:
    """A BERT of four layers under transformers' Trainer, which logs every fifty steps."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

    size = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024}
    config = BertConfig(vocab_size=1000, num_labels=2, **size)
    items = [
        {"input_ids": torch.randint(1000, (64,)), "attention_mask": torch.ones(64, dtype=torch.long), "labels": k % 2}
        for k in range(512)
    ]

    class Watch(TrainerCallback):  # type: ignore[misc]
        def __init__(self, capture: Any) -> None:
            self.capture, self.began, self.last = capture, 0.0, 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if self.capture is not None:
                self.capture.step()
            if state.global_step in (SETTLED, state.max_steps):
                torch.cuda.synchronize()
                self.began, self.last = self.last, time.perf_counter()

    def variant(**options: Any) -> Run:
        def run(steps: int, capture: Any) -> float:
            with tempfile.TemporaryDirectory() as folder:
                arguments = TrainingArguments(
                    folder,
                    max_steps=SETTLED + steps,
                    per_device_train_batch_size=16,
                    report_to=[],
                    logging_steps=50,
                    save_strategy="no",
                    disable_tqdm=True,
                    dataloader_drop_last=True,
                    **options,
                )
                watch = Watch(capture)
                model = BertForSequenceClassification(config)  # a compiled one, compiled once more, is slower
                Trainer(model=model, args=arguments, train_dataset=items, callbacks=[watch]).train()
                return (watch.last - watch.began) / steps

        return run

    return {"eager": variant(), "compile": variant(torch_compile=True, torch_compile_mode="reduce-overhead")}


def lightning_mlp() -> dict[str, Run]:
    """A small network under Lightning, with the progress bar that it shows unless told otherwise."""
    import lightning.pytorch as lightning
    import torch
    from torch import nn

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self, squeeze: Callable[[Any], Any]) -> None:
            super().__init__()
            layers = [part for _ in range(6) for part in (nn.Linear(256, 256), nn.GELU())]
            self.net = squeeze(nn.Sequential(*layers))

        def training_step(self, batch: Any, _: int) -> Any:
            loss = nn.functional.mse_loss(self.net(batch[0]), batch[0])
            self.log("loss", loss, prog_bar=True)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), lr=1e-4)

    class Watch(lightning.Callback):  # type: ignore[misc]
        def __init__(self, capture: Any, last: int) -> None:
            self.capture, self.end, self.began, self.last = capture, last, 0.0, 0.0

        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if self.capture is not None:
                self.capture.step()
            if trainer.global_step in (SETTLED, self.end):
                torch.cuda.synchronize()
                self.began, self.last = self.last, time.perf_counter()

    items = torch.utils.data.TensorDataset(torch.randn(64 * 200, 256))

    def variant(squeeze: Callable[[Any], Any], **options: Any) -> Run:
        module = Module(squeeze)

        def run(steps: int, capture: Any) -> float:
            watch = Watch(capture, SETTLED + steps)
            lightning.Trainer(
                max_steps=SETTLED + steps,
                accelerator="gpu",
                devices=1,
                logger=False,
                enable_checkpointing=False,
                enable_model_summary=False,
                callbacks=[watch],
                **options,
            ).fit(module, torch.utils.data.DataLoader(items, batch_size=64))
            return (watch.last - watch.began) / steps

        return run

    return {
        "eager": variant(lambda net: net),
        "compile": variant(compiled),
        "no progress bar": variant(lambda net: net, enable_progress_bar=False),
    }


PROGRAMS: dict[str, Callable[[], dict[str, Run]]] = {
    "transformer": transformer,
    "transformer_compiled": transformer_compiled,
    "mlp_logged": mlp_logged,
    "denoising": denoising,
    "vision": vision,
    "trainer": trainer,
    "lightning_mlp": lightning_mlp,
}


def one(name: str, folder: Path) -> dict[str, float]:
    """Record a program as it is, and time its variants in turn, in ms."""
    import syncscan

    runs = PROGRAMS[name]()
    runs["eager"](WARM, None)
    with tempfile.TemporaryDirectory() as out, syncscan.profile(out, name=name, calibrate=40, active=2) as capture:
        runs["eager"](80, capture)
        (path,) = capture.paths
        recorded = gzip.decompress(path.read_bytes()).replace(f"{ROOT}/".encode(), b"")
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(recorded, 9, mtime=0))
    for run in runs.values():
        run(WARM, None)
    order = [*runs, *reversed(runs)]
    taken: dict[str, list[float]] = {variant: [] for variant in runs}
    for _ in range(ROUNDS):
        for variant in order:
            taken[variant].append(runs[variant](STEPS, None) * 1e3)
    return {variant: round(statistics.median(times), 3) for variant, times in taken.items()}


def record(folder: Path, names: list[str]) -> None:
    """Each program in a process of its own; what they took goes into `truth.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = folder / "truth.json"
    result = json.loads(truth.read_text()) if truth.exists() else {}
    for name in names:
        command = [sys.executable, "-m", "benchmarks.launches", "one", str(folder), "--only", name]
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TQDM_MININTERVAL": "0.1"})
        messages = [line for line in ended.stdout.splitlines() if line.startswith("{")]
        if not messages:
            print(f"{name} failed: {ended.stderr[-1500:]}", flush=True)
            continue
        result[name] = json.loads(messages[-1])
        print(name, result[name], flush=True)
        truth.write_text(json.dumps(result, indent=1) + "\n")


def table(folder: Path) -> None:
    """Return the table of the projections of `launch-bound` beside the measurements."""
    from syncscan import api

    print("| step | as it is | predicted without launches | measured |\n|---|---|---|---|")
    for name, times in json.loads((folder / "truth.json").read_text()).items():
        analysis = api.analyze(folder / f"{name}.json.gz")
        unprofiled = (analysis.step.unprofiled_us or analysis.step.observed_us) / 1e3
        text = "not said"
        for habit in analysis.habits:
            if habit.rule == "launch-bound" and habit.recoverable_us is not None and habit.recoverable_range_us:
                low, high = (unprofiled - us / 1e3 for us in reversed(habit.recoverable_range_us))
                text = f"{unprofiled - habit.recoverable_us / 1e3:.2f} ({low:.2f} to {high:.2f})"
        scale = unprofiled / times["eager"]
        measured = ", ".join(f"{variant} {ms * scale:.2f}" for variant, ms in times.items() if variant != "eager")
        print(f"| `{name}` | {unprofiled:.2f} | {text} | {measured} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "one", "table"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=[*PROGRAMS], metavar="NAME")
    options = parser.parse_args()
    if options.action == "table":
        table(options.folder)
    elif options.action == "record":
        record(options.folder, options.only)
    else:
        warnings.filterwarnings("ignore")
        try:
            print(json.dumps(one(options.only[0], options.folder)))
        except Exception:
            traceback.print_exc()
            sys.exit(1)


if __name__ == "__main__":
    main()
