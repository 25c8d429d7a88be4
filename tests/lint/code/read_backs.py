"""Numbers, lists and copies that are read back, and what only looks like it."""

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


def train(model, optimizer, loader, device, writer):
    total, seen = 0.0, 0
    for step, (x, y) in enumerate(loader):
        x = x.to(device, non_blocking=True)
        y = y.to(device)  # WARNS to-device
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()  # WARNS item
        total += float(loss)  # WARNS item
        seen += len(x)
        value = loss.item()  # WARNS item
        print(value, f"{value:.3f}", float(value))
        print(loss)  # WARNS log-scalar
        print(f"{step}: {loss:.3f}")  # WARNS log-scalar
        writer.add_scalar("loss", loss)  # WARNS log-scalar
        logits = model(x)
        print(logits.argmax(1))  # WARNS print-tensor
        best = logits.argmax(1).tolist()  # WARNS tolist
        host = logits.detach().cpu()  # WARNS cpu
        host.sum().item(), host.tolist(), host.numpy().sum().item()
        print(host.mean(), best, x.shape, x.size(0), logits.device)
        np.asarray(best).sum().item()
        if step % 100 == 0:
            print(loss.item())  # WARNS item low
        raise_if_bad(loss)
        if loss.ndim > 0:
            raise ValueError(f"{loss} isn't one number: {loss.item()}")
    return total / seen


def raise_if_bad(loss):
    if torch.isnan(loss):  # WARNS nan-guard
        raise ValueError("nan")
    assert torch.isfinite(loss).all()  # WARNS nan-guard
    if torch.isinf(loss).any().item():  # WARNS nan-guard
        raise ValueError("inf")


@torch.no_grad()
def evaluate(model, device):
    loader = DataLoader([1, 2], batch_size=2)
    correct = 0
    for x, y in loader:
        out = model(x.to(device))  # WARNS to-device low
        correct += (out.argmax(1) == y.to(device)).sum().item()  # WARNS item to-device low
        correct += y.sum().item()
    return correct


def once(model, x):
    loss = model(x).mean()
    print(loss)
    return loss.item()


def sample(net):
    ts = torch.linspace(0, 1, 20, device="cuda")
    alphas = torch.linspace(0, 1, 20)
    for k in range(20):
        t = ts[k].item()  # WARNS item
        a = float(alphas[k])
        net(t, a)


JOINTS = [0, 3, 5, 7]
ORDER = np.array([2, 0, 1])
NAMES = ["a", "b"]


def indexed(model, batch, schedule):
    q = model(batch)
    own = [1, 2]
    alphas = torch.linspace(0, 1, 10)
    q[:, [0, 3]].sum().backward()  # WARNS cpu-index
    a, b = q[:, own], q[..., JOINTS]  # WARNS cpu-index
    c, d = q[ORDER], q[[2 * i for i in range(4)]]  # WARNS cpu-index
    e = q[:, sorted(own)] + q[own[:1]]  # WARNS cpu-index
    q[own] = a  # WARNS cpu-index
    f = q[own[0]] + q[tuple(own)] + q[0, 1] + batch[own] + schedule[own] + schedule[NAMES]
    g = alphas[own] + alphas[q.argmax()]  # WARNS tensor-index
    for t in q.argsort():
        alphas[t]  # WARNS tensor-index
    return b, c, d, e, f, g


def shaped(model, batch):
    x = model(batch)
    n, b = x.max(), x.shape[0]
    x.sum().backward()
    torch.zeros((b, n), device=x.device)  # WARNS number-argument
    torch.full(size=[n, 2], fill_value=0.0, device=x.device)  # WARNS number-argument
    x.new_zeros((b, x[0])), x.view(n, -1)  # WARNS number-argument
    x.expand(n, -1), x.reshape(b, x.sum())  # WARNS number-argument
    return x.view(b, -1), x.view(torch.float32), torch.zeros((b, x.size(1))), x.reshape(x.shape), x.repeat(2, 1)


def collate_fn(items):
    for item in items:
        torch.tensor(item).sum().item()
