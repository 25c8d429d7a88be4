"""Compile small networks that read from the device, and say what dynamo makes of each, for the torch that runs this.

    python -m benchmarks.dynamo_reads record          a JSON line a case, of this torch; needs no GPU
    python -m benchmarks.dynamo_reads table [FILE]    the lines of several versions as a table

`dynamo_reads.jsonl` has torch 2.1 to 2.13 on a CPU, and 2.11 on an NVIDIA H100.
"""

from __future__ import annotations

import argparse
import inspect
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "dynamo_reads.jsonl"
CASES = {
    "Straight": "a read in `forward`",
    "Branch": "a branch on a tensor in `forward`",
    "Nonzero": "`nonzero` in `forward`",
    "Print": "`print` in `forward`",
    "Helper": "a read in a function that `forward` calls",
    "WithBlock": "a read within `with torch.no_grad()`",
    "TryBlock": "a read within `try`",
    "Loop": "a read in a loop of `forward`",
    "LoopBranch": "a branch on a tensor in a loop of `forward`",
    "LoopPrint": "`print` in a loop of `forward`",
    "LoopModules": "a read in a loop of `forward` that calls modules of its own",
    "LoopHelper": "a loop of `forward` calls a function that reads",
    "BreakThenLoop": "a read, followed by a read in a loop",
}
"""Each network's class and what it does, in the order of the table."""
CAPTURED = {"capture_scalar_outputs": True, "capture_dynamic_output_shape_ops": True}
"""Options of dynamo's that trace through reads and data-dependent shapes."""


def networks() -> dict[str, Any]:
    """Return the networks' classes by name; torch is imported here."""
    import torch
    from torch import Tensor, nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            return torch.relu(self.linear(x))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
            self.layers = nn.ModuleList(Layer() for _ in range(3))

    class Straight(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            s = x.sum().item()
            return self.b(x) * s

    class Branch(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            if x.sum() > 1e9:
                x = x * 2
            return self.b(x)

    class Nonzero(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            rows = (x > 0).nonzero()
            return self.b(x).sum() + rows.sum()

    class Print(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            print("", end="")
            return self.b(x)

    def read(x: Tensor) -> Tensor:
        return x * x.sum().item()

    class Helper(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = read(self.a(x))
            return self.b(x)

    class WithBlock(Net):
        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                x = self.a(x)
                x = x * x.sum().item()
                x = self.b(x)
            return self.a(x)

    class TryBlock(Net):
        def forward(self, x: Tensor) -> Tensor:
            try:
                x = self.a(x)
                x = x * x.sum().item()
                x = self.b(x)
            finally:
                pass
            return self.a(x)

    class Loop(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            for _ in range(3):
                x = torch.relu(self.b(x)) * x.sum().item()
            return self.a(x)

    class LoopBranch(Net):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(3):
                if x.sum() > 1e9:
                    break
                x = torch.relu(self.b(x))
            return self.a(x)

    class LoopPrint(Net):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(3):
                x = torch.relu(self.b(x))
                print("", end="")
            return self.a(x)

    class LoopModules(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            for layer in self.layers:
                x = layer(x) * x.sum().item()
            return self.a(x)

    class LoopHelper(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            for _ in range(3):
                x = read(self.b(x))
            return self.a(x)

    class BreakThenLoop(Net):
        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            s = x.sum().item()
            x = self.b(x) * s
            for _ in range(3):
                x = torch.relu(self.b(x)) * x.sum().item()
            return self.a(x)

    return {name: made for name, made in locals().items() if name in CASES and inspect.isclass(made)}


def case(name: str, network: Any, config: dict[str, bool]) -> dict[str, Any]:
    """Return what dynamo does with a network: the ops of each graph, its breaks, and the frames that it looked at."""
    import torch
    import torch._dynamo as dynamo
    import torch._dynamo.config as options

    device, graphs = "cuda" if torch.cuda.is_available() else "cpu", list[int]()

    def backend(module: Any, _: Any) -> Any:
        graphs.append(sum(node.op.startswith("call_") for node in module.graph.nodes))
        return module.forward

    dynamo.reset()
    dynamo.utils.counters.clear()
    with options.patch(**config), torch.no_grad():
        compiled = torch.compile(network().to(device), backend=backend)
        for _ in range(2):
            compiled(torch.randn(4, 8, device=device))
    counters = dynamo.utils.counters
    return {
        "torch": torch.__version__,
        "case": name,
        "config": config,
        "graphs": len(graphs),
        "ops": graphs,
        "breaks": {str(reason)[:160]: count for reason, count in counters["graph_break"].items()},
        "frames": dict(counters["frames"]),
    }


def table(lines: list[dict[str, Any]]) -> list[str]:
    """Return the rows of the table: a case a row, a version a column, and the number of graphs in each cell."""
    versions = sorted(
        {line["torch"] for line in lines}, key=lambda v: [int(part) for part in v.split("+")[0].split(".")]
    )
    rows = [f"| graphs of torch | {' | '.join(versions)} |", f"|---|{'--:|' * len(versions)}"]
    for config, suffix in (({}, ""), (CAPTURED, ", captured")):
        known = {(line["case"], line["torch"]): line for line in lines if line["config"] == config}
        for name, about in CASES.items():
            cells = [_cell(known.get((name, version))) for version in versions]
            if any(cells):
                rows.append(f"| {about}{suffix} | {' | '.join(cells)} |")
    return rows


def _cell(line: dict[str, Any] | None) -> str:
    return "" if line is None else f"{line['graphs']}" if line["graphs"] else "eager"


def main() -> None:
    """Record, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["record", "table"])
    parser.add_argument("file", nargs="?", type=Path, default=RECORDED)
    given = parser.parse_args()
    if given.mode == "table":
        print(*table([json.loads(line) for line in given.file.read_text().splitlines()]), sep="\n")
        return
    models = networks()
    for name in CASES:
        print(json.dumps(case(name, models[name], {})), flush=True)
    for name in ("Straight", "Nonzero", "Loop", "LoopModules", "LoopHelper"):
        print(json.dumps(case(name, models[name], CAPTURED)), flush=True)


if __name__ == "__main__":
    main()
