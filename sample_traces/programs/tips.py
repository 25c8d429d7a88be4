"""Tips for training speed (PyTorch Lightning's seven), each before and after, one at a time, on one training step."""

from collections.abc import Callable

import torch
import torch.nn as nn
import torch.nn.functional as F
from setting import Build, Setting, Step
from torch.profiler import record_function as scope


def train(
    *,
    width: int = 2048,
    depth: int = 6,
    rows: int = 4096,
    precision: str = "bf16",
    optimizer: str = "fused",
    after: Callable[[torch.Tensor, torch.Tensor], object] | None = None,
    graph: bool = False,
) -> Build:
    """A step of a deep perceptron with one habit: of precision, of optimizer, or in what follows the step."""

    def made(setting: Setting) -> Step:
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        w, d, n = setting.of(width, 8), setting.of(depth, 2), setting.of(rows, 4)
        layers = [m for _ in range(d) for m in (nn.Linear(w, w), nn.GELU(), nn.LayerNorm(w))]
        model = nn.Sequential(*layers, nn.Linear(w, 16)).to(setting.device)
        options = {"fused": {"fused": True}, "foreach": {"foreach": True}, "loop": {"foreach": False}}[optimizer]
        adam = torch.optim.AdamW(model.parameters(), lr=1e-4, capturable=graph, **options)
        x = torch.randn(n, w, device=setting.device)
        y = torch.randint(0, 16, (n,), device=setting.device)

        def compute() -> torch.Tensor:
            autocast = torch.autocast(setting.device, torch.bfloat16, enabled=precision == "bf16")
            with scope("forward"), autocast:
                loss = F.cross_entropy(model(x).float(), y)
            with scope("backward"):
                adam.zero_grad(set_to_none=True)
                loss.backward()
            with scope("optimizer"):
                adam.step()
            return loss

        run = graphed(compute) if graph else compute

        def step() -> None:
            loss = run()
            if after is not None:
                with scope("after the step"):
                    after(loss, x)

        return step

    return made


def graphed(compute: Callable[[], torch.Tensor]) -> Callable[[], torch.Tensor]:
    """The whole step as one CUDA graph, captured after a few warm-up steps on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            compute()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = compute()

    def replay() -> torch.Tensor:
        graph.replay()
        return loss

    return replay


SUM = [0.0]


def read_back(loss: torch.Tensor, x: torch.Tensor) -> None:
    """`.item()` in the loop: the host waits for the whole step."""
    SUM[0] += loss.item()


def keep_there(loss: torch.Tensor, x: torch.Tensor) -> None:
    """The same sum, kept on the device."""
    x.new_zeros(()).add_(loss.detach())


def give_back(loss: torch.Tensor, x: torch.Tensor) -> None:
    """A needless `empty_cache`: the next step takes its memory anew."""
    if x.is_cuda:
        torch.cuda.empty_cache()


def noise_from_cpu(loss: torch.Tensor, x: torch.Tensor) -> None:
    """A tensor made on the CPU and sent."""
    x.add_(torch.rand(x.shape).to(x.device), alpha=1e-9)


def noise_there(loss: torch.Tensor, x: torch.Tensor) -> None:
    """The same, made where it is needed."""
    x.add_(torch.rand(x.shape, device=x.device), alpha=1e-9)


VARIANTS = {
    "tips.fp32": train(precision="fp32"),
    "tips.tf32": train(precision="tf32"),
    "tips.bf16": train(precision="bf16"),
    "tips.item": train(after=read_back),
    "tips.no_item": train(after=keep_there),
    "tips.empty_cache": train(after=give_back),
    "tips.no_empty_cache": train(),
    "tips.cpu_tensor": train(after=noise_from_cpu),
    "tips.device_tensor": train(after=noise_there),
    "tips.optimizer_loop": train(width=256, depth=24, rows=256, optimizer="loop"),
    "tips.optimizer_fused": train(width=256, depth=24, rows=256, optimizer="fused"),
    "tips.eager": train(width=256, depth=24, rows=256, optimizer="foreach"),
    "tips.graph": train(width=256, depth=24, rows=256, optimizer="foreach", graph=True),
}
