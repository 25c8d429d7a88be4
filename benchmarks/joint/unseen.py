"""Programs that no cost was fitted to, and that nothing was looked at beside: as `programs.py`, and measured alike.

They were written and measured when the costs stood, to see how far those hold for programs of other kinds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Program:
    """Networks to compile, and a step that is handed them."""

    nets: list[nn.Module]
    step: Callable[..., None]


def _training(net: nn.Module, loss: Callable[[Any], Tensor]) -> Program:
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        loss(f).backward()
        optimizer.step()

    return Program([net], step)


# Syncs outside of the network


class Down(nn.Module):
    def __init__(self, c: int, out: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(c, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.norm2 = nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))))


class Unet(nn.Module):
    def __init__(self, c: int = 24, depth: int = 3) -> None:
        super().__init__()
        wide = [c << i for i in range(depth + 1)]
        self.first = Down(3, c)
        self.down = nn.ModuleList(Down(a, b) for a, b in itertools.pairwise(wide))
        self.up = nn.ModuleList(Down(a + b, a) for a, b in zip(wide[-2::-1], wide[:0:-1], strict=False))
        self.head = nn.Conv2d(c, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        skips = []
        for layer in self.down:
            skips.append(x)
            x = layer(F.max_pool2d(x, 2))
        for layer, skip in zip(self.up, reversed(skips), strict=True):
            x = layer(torch.cat([skip, F.interpolate(x, scale_factor=2.0)], 1))
        return self.head(x)


def unet(sync: bool, device: str) -> Program:
    """Segmentation; the loss and how much is right are read in each step."""
    net, x, log = Unet().to(device), torch.randn(4, 3, 64, 64, device=device), []
    y = torch.randint(0, 4, (4, 64, 64), device=device)

    def loss(f: Any) -> Tensor:
        out = f(x)
        value = F.cross_entropy(out, y)
        if sync:
            log.append((value.item(), (out.argmax(1) == y).float().mean().item()))
        return value

    return _training(net, loss)


class Rms(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Layer(nn.Module):
    """A decoder's layer with rotated queries and a gated MLP."""

    def __init__(self, d: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.n1, self.n2 = heads, Rms(d), Rms(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, t, d = x.shape
        h = self.n1(x)
        q, k, v = (w(h).view(b, t, self.heads, -1).transpose(1, 2) for w in (self.q, self.k, self.v))
        q, k = (
            y * cos + torch.cat([-y[..., y.shape[-1] // 2 :], y[..., : y.shape[-1] // 2]], -1) * sin for y in (q, k)
        )
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        h = self.n2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Words(nn.Module):
    def __init__(self, d: int = 256, layers: int = 4, longest: int = 64) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(2000, d), nn.ModuleList(Layer(d) for _ in range(layers))
        self.norm, self.head = Rms(d), nn.Linear(d, 2000, bias=False)
        angle = torch.outer(torch.arange(longest), 1e4 ** -(torch.arange(0, d // 4, 2) / (d // 4))).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))


def words(sync: bool, device: str) -> Program:
    """A language model under autocast; the norm of its gradients is read."""
    net, log = Words().to(device), []
    tokens = torch.randint(0, 2000, (8, 64), device=device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            value = F.cross_entropy(f(tokens).flatten(0, 1), tokens.flatten())
        value.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if sync:
            log.append(norm.item())
        optimizer.step()

    return Program([net], step)


class Tower(nn.Module):
    def __init__(self, d: int, layers: int) -> None:
        super().__init__()
        self.layers, self.norms = (
            nn.ModuleList(nn.Linear(d, d) for _ in range(layers)), nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.tanh(layer(norm(x)))
        return F.normalize(x, dim=-1)


def pairs(sync: bool, device: str) -> Program:
    """Two networks whose outputs are matched; how many match is read."""
    a, b, log = Tower(192, 6).to(device), Tower(192, 6).to(device), []
    x, y = (torch.randn(128, 192, device=device) for _ in range(2))
    optimizer = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.01, momentum=0.9)
    right = torch.arange(128, device=device)

    def step(f: Any, g: Any) -> None:
        optimizer.zero_grad()
        alike = f(x) @ g(y).T / 0.07
        (F.cross_entropy(alike, right) + F.cross_entropy(alike.T, right)).backward()
        optimizer.step()
        if sync:
            log.append((alike.argmax(1) == right).float().mean().item())

    return Program([a, b], step)


# A sync in the network, outside of a loop


class Codes(nn.Module):
    def __init__(self, sync: bool, c: int = 48) -> None:
        super().__init__()
        self.sync, self.used = sync, 0.0
        self.encode = nn.ModuleList([nn.Conv2d(3, c, 4, 2, 1), nn.Conv2d(c, c, 4, 2, 1), nn.Conv2d(c, 32, 3, 1, 1)])
        self.book = nn.Parameter(torch.randn(256, 32))
        self.decode = nn.ModuleList([nn.Conv2d(32, c, 3, 1, 1), nn.ConvTranspose2d(c, c, 4, 2, 1)])
        self.last = nn.ConvTranspose2d(c, 3, 4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for layer in self.encode:
            h = F.gelu(layer(h))
        flat = h.permute(0, 2, 3, 1).reshape(-1, 32)
        code = torch.cdist(flat, self.book).argmin(1)
        share = F.one_hot(code, 256).float().mean(0)
        if self.sync:
            self.used = (-(share * (share + 1e-9).log()).sum()).exp().item()
        near = self.book[code].view(h.shape[0], h.shape[2], h.shape[3], 32).permute(0, 3, 1, 2)
        h = h + (near - h).detach() + 0.1 * near
        for layer in self.decode:
            h = F.gelu(layer(h))
        return self.last(h)


def codes(sync: bool, device: str) -> Program:
    """Images as codes of a book; the network reads how much of the book it uses."""
    net, x = Codes(sync).to(device), torch.randn(8, 3, 32, 32, device=device)
    return _training(net, lambda f: F.mse_loss(f(x), x))


class Upscale(nn.Module):
    def __init__(self, sync: bool, c: int = 48, layers: int = 10) -> None:
        super().__init__()
        self.sync, self.first = sync, nn.Conv2d(3, c, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(c, c, 3, padding=1) for _ in range(layers))
        self.scales = nn.ParameterList(nn.Parameter(torch.full((1, c, 1, 1), 0.1)) for _ in range(layers))
        self.last = nn.Conv2d(c, 12, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        if self.sync:
            most = float(x.abs().max())
            x = x / max(most, 1e-3)
        else:
            x = x / x.abs().max().clamp(min=1e-3)
        h = self.first(x)
        for layer, scale in zip(self.layers, self.scales, strict=True):
            h = h + scale * F.leaky_relu(layer(h), 0.2)
        return F.pixel_shuffle(self.last(h), 2).clamp(-1, 1)


def upscale(sync: bool, device: str) -> Program:
    """Four images are made larger, each by itself; the network reads its input's range."""
    net, images = Upscale(sync).to(device).eval(), [torch.randn(1, 3, 48, 48, device=device) for _ in range(4)]

    def step(f: Any) -> None:
        with torch.inference_mode():
            for image in images:
                f(image)

    return Program([net], step)


# A sync in a loop


class Solver(nn.Module):
    def __init__(self, sync: bool, d: int = 128, rounds: int = 12) -> None:
        super().__init__()
        self.sync, self.rounds, self.up, self.down = sync, rounds, nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(self.rounds):
            new = self.norm(x + self.down(F.relu(self.up(z))))
            far = (new - z).norm() / new.norm()
            z = new
            if self.sync and far < 1e-9:
                break
        return z


def solver(sync: bool, device: str) -> Program:
    """A fixed point that is looked for in a loop, which asks each time whether it is near."""
    net, x = Solver(sync).to(device), torch.randn(256, 128, device=device)
    return _training(net, lambda f: f(x).square().mean())


class Cell(nn.Module):
    def __init__(self, d: int = 192, layers: int = 3) -> None:
        super().__init__()
        self.embed, self.cells = nn.Embedding(500, d), nn.ModuleList(nn.GRUCell(d, d) for _ in range(layers))
        self.head = nn.Linear(d, 500)

    def forward(self, token: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        x, after = self.embed(token), []
        for cell, h in zip(self.cells, state.unbind(0), strict=True):
            x = cell(x, h)
            after.append(x)
        return self.head(x).log_softmax(-1), torch.stack(after)


def beams(sync: bool, device: str) -> Program:
    """Ten rounds of a search, whose best words are read in each."""
    net, text = Cell().to(device).eval(), []

    def step(f: Any) -> None:
        with torch.no_grad():
            token, state = torch.zeros(8, dtype=torch.long, device=device), torch.zeros(3, 8, 192, device=device)
            score = torch.zeros(8, 1, device=device)
            for _ in range(10):
                odds, state = f(token, state)
                best = (score + odds).flatten().topk(8)
                score, token = best.values[:, None], best.indices % 500
                state = state[:, best.indices // 500].clone()
                if sync:
                    text.append(token.tolist())

    return Program([net], step)


class Heads(nn.Module):
    def __init__(self, sync: bool, d: int = 128, tasks: int = 6) -> None:
        super().__init__()
        self.sync, self.trunk = sync, nn.ModuleList(nn.Linear(d, d) for _ in range(5))
        self.heads, self.seen = (
            nn.ModuleList(nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, 1)) for _ in range(tasks)),
            {},
        )

    def one(self, number: int, value: Tensor) -> Tensor:
        """Return the task's loss, and note it."""
        lost = F.smooth_l1_loss(value, torch.ones_like(value))
        if self.sync:
            self.seen[number] = lost.item()
        return lost

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.trunk:
            x = F.elu(layer(x))
        total = x.new_zeros(())
        for number, head in enumerate(self.heads):
            total = total + self.one(number, head(x))
        return total


def tasks(sync: bool, device: str) -> Program:
    """Six tasks, each of whose losses a function reads that the network calls in a loop."""
    net, x = Heads(sync).to(device), torch.randn(512, 128, device=device)
    return _training(net, lambda f: f(x))


PROGRAMS = {
    make.__name__: make
    for make in (
        unet, words, codes, upscale, solver, beams, tasks, pairs,
    )
}  # fmt: skip
