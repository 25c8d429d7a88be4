"""DataParallel against DistributedDataParallel (PyTorch Lightning's tips), on two GPUs.

Measured by the recorder, which runs the same number of steps on every rank:

    python sample_traces/programs/record.py OUT parallel.data
    torchrun --nproc-per-node 2 sample_traces/programs/record.py OUT parallel.distributed
"""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from setting import Setting, Step
from torch.profiler import record_function as scope


def model(where: str) -> nn.Module:
    """A deep perceptron of 50 million weights."""
    torch.manual_seed(0)
    return nn.Sequential(*[m for _ in range(12) for m in (nn.Linear(2048, 2048), nn.GELU())], nn.Linear(2048, 16)).to(
        where
    )


def stepping(net: nn.Module, rows: int, where: str) -> Step:
    """One training step on `rows` rows that lie on `where`."""
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(rows, 2048, device=where), torch.randint(0, 16, (rows,), device=where)

    def step() -> None:
        with scope("forward"):
            loss = F.cross_entropy(net(x), y)
        with scope("backward"):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
        with scope("optimizer"):
            optimizer.step()

    return step


def data_parallel(setting: Setting) -> Step:
    """One process: copies the weights to both GPUs, scatters the batch and gathers the outputs, every step."""
    torch.backends.cuda.matmul.allow_tf32 = True
    return stepping(nn.DataParallel(model("cuda:0"), device_ids=[0, 1]), 4096, "cuda:0")


def distributed(setting: Setting) -> Step:
    """One process a GPU, each with half of the batch; gradients are averaged while backward runs. Needs torchrun."""
    torch.backends.cuda.matmul.allow_tf32 = True
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl")
    net = nn.parallel.DistributedDataParallel(model(f"cuda:{rank}"), device_ids=[rank])
    return stepping(net, 2048, f"cuda:{rank}")


VARIANTS = {"parallel.data": data_parallel, "parallel.distributed": distributed}
