"""Small programs, each with its syncs and without: `PROGRAMS[name](sync, device)` makes `nets` and a `step(*nets)`.

A step takes the networks as somebody compiled them, or left them alone; the rest of it is as its author wrote it. The
module is loaded anew for each state, since dynamo keeps what it knows of a function on its code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SINK = open(os.devnull, "w")  # noqa: SIM115


@dataclass
class Program:
    """Networks to compile, and a step that is handed them."""

    nets: list[nn.Module]
    step: Callable[..., None]


def _training(net: nn.Module, loss: Callable[[Any], Tensor], after: Callable[[Tensor], None] | None = None) -> Program:
    """A usual step: gradients to none, loss, backward, what `after` does with the loss, AdamW."""
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        value = loss(f)
        value.backward()
        if after is not None:
            after(value)
        optimizer.step()

    return Program([net], step)


class Block(nn.Module):
    """A transformer's layer."""

    def __init__(self, d: int, heads: int = 8) -> None:
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Transformer(nn.Module):
    def __init__(self, d: int, layers: int, classes: int) -> None:
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block(d) for _ in range(layers)), nn.Linear(d, classes)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


class Conv(nn.Module):
    """A residual layer of a network of images."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(F.silu(self.norm(x)))


# Syncs in a loop of the network's own


class Sampler(nn.Module):
    def __init__(self, sync: bool) -> None:
        super().__init__()
        self.sync, self.layers = sync, nn.ModuleList(Conv(64) for _ in range(6))
        self.register_buffer("sigmas", torch.linspace(1, 0.01, 8))

    def forward(self, x: Tensor) -> Tensor:
        for t in range(8):
            sigma = self.sigmas[t].item() if self.sync else self.sigmas[t]
            h = x
            for layer in self.layers:
                h = layer(h)
            x = x - sigma * 0.1 * h
        return x


def sampler(sync: bool, device: str) -> Program:
    """A diffusion sampler that reads each step's noise level; its layers are classes of their own."""
    net, x = Sampler(sync).to(device), torch.randn(2, 64, 32, 32, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            f(x)

    return Program([net], step)


class Mlp(nn.Module):
    def __init__(self, d: int, wide: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(d, wide), nn.Linear(wide, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Experts(nn.Module):
    def __init__(self, sync: bool, d: int = 256, count: int = 6) -> None:
        super().__init__()
        self.sync, self.gate = sync, nn.Linear(d, count)
        self.experts = nn.ModuleList(Mlp(d, 2 * d) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        weight, top = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            if self.sync:
                rows = torch.where(top == i)[0]
                out = out.index_add(0, rows, expert(x[rows]) * weight[rows, None])
            else:
                out = out + expert(x) * (weight * (top == i))[:, None]
        return out


def experts(sync: bool, device: str) -> Program:
    """Experts that take the rows they are chosen for, or all of them and a weight of zero."""
    net, x = Experts(sync).to(device), torch.randn(2048, 256, device=device)
    return _training(net, lambda f: f(x).square().mean())


class Routed(nn.Module):
    def __init__(self, sync: bool, d: int = 256, count: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.sync, self.count = sync, count
        self.gates = nn.ModuleList(nn.Linear(d, count) for _ in range(layers))
        self.up = nn.ParameterList(nn.Parameter(torch.randn(count, d, 2 * d) * 0.05) for _ in range(layers))
        self.down = nn.ParameterList(nn.Parameter(torch.randn(count, 2 * d, d) * 0.05) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for gate, up, down in zip(self.gates, self.up, self.down, strict=True):
            order = gate(x).argmax(-1).argsort()
            if self.sync:
                sizes = torch.bincount(gate(x).argmax(-1), minlength=self.count).tolist()
                parts = x[order].split(sizes)
                y = torch.cat([F.gelu(p @ u) @ w for p, u, w in zip(parts, up, down, strict=True)])
            else:
                parts = x[order].view(self.count, -1, x.shape[-1])
                y = torch.bmm(F.gelu(torch.bmm(parts, up)), down).reshape(x.shape)
            x = x + torch.zeros_like(x).index_copy(0, order, y)
        return x


def routed(sync: bool, device: str) -> Program:
    """Tokens sorted by their expert, with sizes read back in each layer, or with a capacity."""
    net, x = Routed(sync).to(device), torch.randn(1024, 256, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            f(x)

    return Program([net], step)


class EarlyExit(nn.Module):
    def __init__(self, sync: bool, d: int = 256) -> None:
        super().__init__()
        self.sync, self.blocks, self.head = sync, nn.ModuleList(Block(d) for _ in range(8)), nn.Linear(d, 10)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
            if self.sync and self.head(x.mean(1)).softmax(-1).amin() > 0.999:
                break
        return self.head(x.mean(1))


def early_exit(sync: bool, device: str) -> Program:
    """Asks after each layer whether it is sure by now; it never is."""
    net, x = EarlyExit(sync).to(device).eval(), torch.randn(8, 64, 256, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            f(x)

    return Program([net], step)


class CheckedMask(nn.Module):
    def __init__(self, sync: bool, d: int = 256) -> None:
        super().__init__()
        self.sync, self.blocks = sync, nn.ModuleList(Block(d) for _ in range(6))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, None if self.sync and bool(mask.all()) else mask[:, None, None])
        return x


def maskcheck(sync: bool, device: str) -> Program:
    """Each layer looks whether its mask masks anything."""
    net, x = CheckedMask(sync).to(device), torch.randn(8, 64, 256, device=device)
    mask = torch.ones(8, 64, dtype=torch.bool, device=device)
    mask[:, -1] = False
    return _training(net, lambda f: f(x, mask).square().mean())


class Recurrent(nn.Module):
    def __init__(self, sync: bool, d: int = 256) -> None:
        super().__init__()
        self.sync, self.cell, self.d = sync, nn.LSTMCell(64, d), d

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[1], self.d)
        for t in range(x.shape[0]):
            h, c = self.cell(x[t], (h, c))
            if self.sync and not torch.isfinite(h).all():
                break
        return h


def rnn(sync: bool, device: str) -> Program:
    """A loop over time that looks for infinities."""
    net, x = Recurrent(sync).to(device), torch.randn(20, 64, 64, device=device)
    return _training(net, lambda f: f(x).square().mean())


# Syncs within the network, but in no loop


class Ragged(nn.Module):
    def __init__(self, sync: bool, d: int = 256) -> None:
        super().__init__()
        self.sync, self.embed, self.body = sync, nn.Embedding(1000, d), Transformer(d, 6, 20)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        longest = int(lengths.max().item()) if self.sync else 56
        return self.body(self.embed(tokens[:, :longest]))


def ragged(sync: bool, device: str) -> Program:
    """Cuts a batch to its longest sequence, which it reads."""
    net, tokens = Ragged(sync).to(device), torch.randint(0, 1000, (8, 64), device=device)
    lengths, y = torch.full((8,), 56, device=device), torch.randint(0, 20, (8,), device=device)
    return _training(net, lambda f: F.cross_entropy(f(tokens, lengths), y))


class Unpadded(nn.Module):
    def __init__(self, sync: bool, d: int = 256) -> None:
        super().__init__()
        self.sync, self.first, self.second = sync, nn.Linear(d, d), nn.ModuleList(Mlp(d, 4 * d) for _ in range(8))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = F.gelu(self.first(x))
        rows = x[mask] if self.sync else x * mask[..., None]
        for layer in self.second:
            rows = rows + layer(rows)
        return rows


def unpadded(sync: bool, device: str) -> Program:
    """Drops its padding with a boolean mask, or multiplies it away."""
    net, x = Unpadded(sync).to(device), torch.randn(16, 128, 256, device=device)
    mask = torch.arange(128, device=device) < torch.arange(113, 129, device=device)[:, None]
    return _training(net, lambda f: f(x, mask).square().sum())


class Regulated(nn.Module):
    def __init__(self, sync: bool, d: int = 192) -> None:
        super().__init__()
        self.sync, self.front = sync, nn.ModuleList(Block(d) for _ in range(3))
        self.decoder = nn.ModuleList(Block(d) for _ in range(3))

    def forward(self, x: Tensor, counts: Tensor) -> Tensor:
        for block in self.front:
            x = block(x)
        size = None if self.sync else 4 * x.shape[1]
        x = torch.repeat_interleave(x, counts, dim=1, output_size=size)
        for block in self.decoder:
            x = block(x)
        return x


def repeat(sync: bool, device: str) -> Program:
    """Repeats each sound as often as a tensor of the device says; its length is known, or isn't."""
    net, x = Regulated(sync).to(device), torch.randn(4, 32, 192, device=device)
    counts = torch.full((32,), 4, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            f(x, counts)

    return Program([net], step)


class Joined(nn.Module):
    def __init__(self, sync: bool, d: int = 64) -> None:
        super().__init__()
        self.sync, self.tables = sync, nn.ModuleList(nn.Embedding(500, d) for _ in range(8))
        self.net = nn.Sequential(nn.Linear(8 * d, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))

    def join(self, ids: Tensor) -> Tensor:
        parts = []
        for i, table in enumerate(self.tables):
            if self.sync and ids[:, i].max().item() >= table.num_embeddings:
                raise IndexError(i)
            parts.append(table(ids[:, i]))
        return torch.cat(parts, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.net(self.join(ids))[:, 0]


def joins(sync: bool, device: str) -> Program:
    """Checks the ids of each of its tables before it looks them up."""
    net, ids = Joined(sync).to(device), torch.randint(0, 500, (4096, 8), device=device)
    y = torch.rand(4096, device=device)
    return _training(net, lambda f: F.binary_cross_entropy_with_logits(f(ids), y))


class Graph(nn.Module):
    def __init__(self, sync: bool, d: int = 128) -> None:
        super().__init__()
        self.sync, self.layers, self.head = sync, nn.ModuleList(Mlp(2 * d, d) for _ in range(5)), nn.Linear(d, 1)
        self.back = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(5))

    def forward(self, x: Tensor, edges: Tensor, graph: Tensor) -> Tensor:
        for layer, back in zip(self.layers, self.back, strict=True):
            message = back(layer(torch.cat([x[edges[0]], x[edges[1]]], 1)))
            x = x + torch.zeros_like(x).index_add(0, edges[1], message)
        count = int(graph.max()) + 1 if self.sync else 32
        return self.head(x.new_zeros(count, x.shape[1]).index_add(0, graph, x))


def graphnet(sync: bool, device: str) -> Program:
    """Messages along edges, then a sum for each graph of the batch, whose number it reads."""
    net, x = Graph(sync).to(device), torch.randn(1024, 128, device=device)
    edges = torch.randint(0, 1024, (2, 4096), device=device)
    graph = torch.arange(1024, device=device) // 32
    return _training(net, lambda f: f(x, edges, graph).square().mean())


class Boxes(nn.Module):
    def __init__(self, sync: bool) -> None:
        super().__init__()
        self.sync, self.stem = sync, nn.Conv2d(3, 64, 7, 4, 3)
        self.layers, self.head = nn.ModuleList(Conv(64) for _ in range(5)), nn.Conv2d(64, 5, 1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        for layer in self.layers:
            x = layer(x)
        out = self.head(x).flatten(2).transpose(1, 2)[0]
        score, box = out[:, 4].sigmoid(), out[:, :4].exp()
        if self.sync:
            sure = (score > 0.3).nonzero()[:, 0]
            score, box = score[sure], box[sure]
        score, order = score.topk(64)
        box = box[order]
        overlap = (box[:, None, :2] - box[None, :, :2]).abs().sum(-1) < 0.05
        alive = torch.ones_like(score, dtype=torch.bool)
        for i in range(8):
            if self.sync and not alive[i]:
                continue
            drop = overlap[i].clone()
            drop[: i + 1] = False
            alive = alive & ~(drop & alive[i])
        return score * alive


def nms(sync: bool, device: str) -> Program:
    """A detector that keeps its surest boxes, and asks of each whether it is still there."""
    net, x = Boxes(sync).to(device).eval(), torch.randn(1, 3, 256, 256, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            f(x)

    return Program([net], step)


# Syncs outside of what is compiled


class Chain(nn.Module):
    """Layers one after the other, in code of its own: that of `nn.Sequential` would be all states' at once."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def metrics(sync: bool, device: str) -> Program:
    """Accuracy and loss read in each step of a classifier of images."""
    net = Chain(nn.Conv2d(3, 64, 4, 4), *(Conv(64) for _ in range(12)), nn.Flatten(), nn.Linear(64 * 256, 20))
    net, x = net.to(device), torch.randn(8, 3, 64, 64, device=device)
    y, running = torch.randint(0, 20, (8,), device=device), []
    optimizer = torch.optim.SGD(net.parameters(), 1e-3, momentum=0.9)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        out = f(x)
        value = F.cross_entropy(out, y)
        if sync:
            running.append(((out.argmax(1) == y).float().mean().item(), value.item()))
        value.backward()
        optimizer.step()

    return Program([net], step)


class Decoder(nn.Module):
    def __init__(self, d: int = 256, layers: int = 6, longest: int = 64) -> None:
        super().__init__()
        self.embed, self.d = nn.Embedding(1000, d), d
        self.norm = nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        self.qkv = nn.ModuleList(nn.Linear(d, 3 * d) for _ in range(layers))
        self.mlp = nn.ModuleList(Mlp(d, 4 * d) for _ in range(layers))
        self.register_buffer("keys", torch.zeros(layers, 4, longest, d))
        self.register_buffer("values", torch.zeros(layers, 4, longest, d))

    def forward(self, token: Tensor, at: Tensor) -> Tensor:
        x, mask = self.embed(token), torch.arange(64, device=token.device) <= at
        for i, (norm, qkv, mlp) in enumerate(zip(self.norm, self.qkv, self.mlp, strict=True)):
            q, k, v = qkv(norm(x)).chunk(3, -1)
            self.keys[i].index_copy_(1, at, k[:, None])
            self.values[i].index_copy_(1, at, v[:, None])
            weights = torch.einsum("bd,btd->bt", q, self.keys[i]).masked_fill(~mask, -1e9).softmax(-1)
            x = x + torch.einsum("bt,btd->bd", weights, self.values[i])
            x = x + mlp(x)
        return (x @ self.embed.weight.T).argmax(-1)


def decoder(sync: bool, device: str) -> Program:
    """Eight tokens, greedily, from a static cache; after each it asks whether all sequences have ended."""
    net, end = Decoder().to(device).eval(), 1001
    places = [torch.tensor([i], device=device) for i in range(8)]

    def step(f: Any) -> None:
        token = torch.zeros(4, dtype=torch.long, device=device)
        with torch.no_grad():
            for at in places:
                token = f(token, at).clone()
                if sync and bool((token == end).all()):
                    break

    return Program([net], step)


class Judge(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def gan(sync: bool, device: str) -> Program:
    """Two networks and two optimizers, whose losses are read."""
    g = Chain(*(m for _ in range(6) for m in (nn.Linear(256, 256), nn.LayerNorm(256), nn.SiLU()))).to(device)
    d = Judge(*(m for _ in range(6) for m in (nn.Linear(256, 256), nn.SiLU())), nn.Linear(256, 1)).to(device)
    og, od = torch.optim.AdamW(g.parameters(), 1e-4), torch.optim.AdamW(d.parameters(), 1e-4)
    real, noise, log = torch.randn(512, 256, device=device), torch.randn(512, 256, device=device), []

    def step(make: Any, judge: Any) -> None:
        fake = make(noise)
        od.zero_grad()
        lost = F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean()
        lost.backward()
        od.step()
        og.zero_grad()
        won = F.softplus(-judge(fake)).mean()
        won.backward()
        og.step()
        if sync:
            log.append((lost.item(), won.item()))

    return Program([g, d], step)


def logging(sync: bool, device: str) -> Program:
    """Loss and the norm of each gradient read in each step."""
    net, x = Transformer(192, 5, 10).to(device), torch.randn(16, 32, 192, device=device)
    y, log = torch.randint(0, 10, (16,), device=device), {}

    def after(value: Tensor) -> None:
        if sync:
            log["loss"] = value.item()
            log.update({name: p.grad.norm().item() for name, p in net.named_parameters()})

    return _training(net, lambda f: F.cross_entropy(f(x), y), after)


def clip(sync: bool, device: str) -> Program:
    """Clips its gradients by their norm, if that is read to be too large."""
    net, x = Transformer(256, 6, 10).to(device), torch.randn(8, 64, 256, device=device)
    y, parameters = torch.randint(0, 10, (8,), device=device), list(net.parameters())

    def after(value: Tensor) -> None:
        norm = torch.stack(torch._foreach_norm([p.grad for p in parameters])).norm()
        if sync:
            if norm.item() > 0.1:
                torch._foreach_mul_([p.grad for p in parameters], 0.1 / norm.item())
        else:
            torch._foreach_mul_([p.grad for p in parameters], (0.1 / norm).clamp(max=1))

    return _training(net, lambda f: F.cross_entropy(f(x), y), after)


def scaler(sync: bool, device: str) -> Program:
    """A loss scaled for half precision, whose scaler reads whether a step is to be left out; or bfloat16 without."""
    net, x = Transformer(256, 6, 10).to(device), torch.randn(16, 64, 256, device=device)
    y, optimizer = torch.randint(0, 10, (16,), device=device), torch.optim.AdamW(net.parameters(), 1e-4)
    scale = torch.amp.GradScaler(device, enabled=sync)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        with torch.autocast(device, torch.float16 if sync else torch.bfloat16):
            value = F.cross_entropy(f(x), y)
        scale.scale(value).backward()
        scale.step(optimizer)
        scale.update()

    return Program([net], step)


class Heads(nn.Module):
    def __init__(self, d: int = 256) -> None:
        super().__init__()
        self.body, self.heads = (
            nn.ModuleList(Mlp(d, 2 * d) for _ in range(8)),
            nn.ModuleList(nn.Linear(d, 4) for _ in range(6)),
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        for layer in self.body:
            x = x + layer(x)
        return {f"loss_{i}": head(x).square().mean() for i, head in enumerate(self.heads)}


def losses(sync: bool, device: str) -> Program:
    """A dictionary of losses, each read."""
    net, x, log = Heads().to(device), torch.randn(1024, 256, device=device), {}

    def loss(f: Any) -> Tensor:
        parts = f(x)
        if sync:
            log.update({name: value.item() for name, value in parts.items()})
        return sum(parts.values())

    return _training(net, loss)


def heavy(sync: bool, device: str) -> Program:
    """Large matrix products: the device is the limit."""
    net, x = Transformer(1024, 6, 10).to(device), torch.randn(24, 256, 1024, device=device)
    y, log = torch.randint(0, 10, (24,), device=device), []

    def loss(f: Any) -> Tensor:
        with torch.autocast(device, torch.bfloat16):
            value = F.cross_entropy(f(x), y)
        if sync:
            log.append(value.item())
        return value

    return _training(net, loss)


def straight(sync: bool, device: str) -> Program:
    """No sync in either."""
    net, x = Transformer(256, 6, 10).to(device), torch.randn(8, 64, 256, device=device)
    y = torch.randint(0, 10, (8,), device=device)
    return _training(net, lambda f: F.cross_entropy(f(x), y))


# Other effects


class Printed(nn.Module):
    def __init__(self, d: int = 256) -> None:
        super().__init__()
        self.first, self.second = Transformer(d, 4, d), nn.ModuleList(Mlp(d, 2 * d) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        print("halfway", file=SINK)
        for layer in self.second:
            x = x + layer(x)
        return x


def printed(sync: bool, device: str) -> Program:
    """Prints halfway through its network, in both; its loss is read outside of it."""
    net, x, log = Printed().to(device), torch.randn(8, 64, 256, device=device), []

    def loss(f: Any) -> Tensor:
        value = f(x).square().mean()
        if sync:
            log.append(value.item())
        return value

    return _training(net, loss)


PROGRAMS = {
    make.__name__: make
    for make in (
        sampler, experts, early_exit, maskcheck, unpadded, ragged, printed, metrics, heavy, decoder, clip,
        rnn, routed, repeat, joins, logging, losses, straight, graphnet, nms, gan, scaler,
    )
}  # fmt: skip
