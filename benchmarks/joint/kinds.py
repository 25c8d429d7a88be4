"""Programs of two kinds: many calls of a network in a step, and networks whose device is the limit; as `programs.py`.

What a call costs, and what fused work leaves, was fitted to the first twelve; `HELD_OUT` names the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Program:
    nets: list[nn.Module]
    step: Callable[..., None]


def small(device: str) -> bool:
    return device == "cpu"


def _training(net, loss, after=None, lr=1e-4):
    optimizer = torch.optim.AdamW(net.parameters(), lr)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        value = loss(f)
        value.backward()
        if after is not None:
            after(value)
        optimizer.step()

    return Program([net], step)


class Norm(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, padding=1)
        self.shift = nn.Linear(64, c)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return x + self.conv(F.silu(self.norm(x) + self.shift(t)[:, :, None, None]))


class Denoiser(nn.Module):
    def __init__(self, c: int, layers: int) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(4, c, 3, padding=1), nn.Conv2d(c, 4, 3, padding=1)
        self.layers = nn.ModuleList(Norm(c) for _ in range(layers))
        self.time = nn.Sequential(nn.Linear(1, 64), nn.SiLU(), nn.Linear(64, 64))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        t = self.time(t[:, None])
        h = self.first(x)
        for layer in self.layers:
            h = layer(h, t)
        return self.last(h)


def diffuse(sync: bool, device: str) -> Program:
    """A sampler that calls a small network 32 times; the noise level is read from the device before each call."""
    net, x0 = Denoiser(32, 3).to(device).eval(), torch.randn(2, 4, 16, 16, device=device)
    sigmas = torch.linspace(1, 0.01, 32, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            x = x0
            for i in range(32):
                s = sigmas[i].item() if sync else sigmas[i]
                t = torch.full((2,), s, device=device) if sync else s.expand(2)
                x = x - s * 0.1 * f(x, t)

    return Program([net], step)


class Attend(nn.Module):
    def __init__(self, d: int, longest: int, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out, self.up, self.down = (
            nn.Linear(d, 3 * d),
            nn.Linear(d, d),
            nn.Linear(d, 4 * d),
            nn.Linear(4 * d, d),
        )
        self.register_buffer("k", torch.zeros(4, heads, longest, d // heads))
        self.register_buffer("v", torch.zeros(4, heads, longest, d // heads))

    def forward(self, x: Tensor, at: Tensor, mask: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        self.k.index_copy_(2, at, k)
        self.v.index_copy_(2, at, v)
        a = F.scaled_dot_product_attention(q, self.k, self.v, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class Decoder(nn.Module):
    def __init__(self, d: int = 256, layers: int = 4, longest: int = 32) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(1000, d), nn.Linear(d, 1000)
        self.layers = nn.ModuleList(Attend(d, longest) for _ in range(layers))
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest, dtype=torch.bool)))

    def forward(self, token: Tensor, at: Tensor) -> Tensor:
        x, mask = self.embed(token)[:, None], self.mask[at][None, None]
        for layer in self.layers:
            x = layer(x, at, mask)
        return self.head(x[:, -1]).argmax(-1)


def decode(sync: bool, device: str) -> Program:
    """Decodes 16 tokens with a cache that the network writes; looks after each whether all have ended."""
    net = Decoder().to(device).eval()
    places = torch.arange(16, device=device).split(1)

    def step(f: Any) -> None:
        with torch.no_grad():
            token = torch.zeros(4, dtype=torch.long, device=device)
            for at in places:
                token = f(token, at).clone()
                if sync and bool((token == 1001).all()):
                    break

    return Program([net], step)


class Block(nn.Module):
    def __init__(self, d: int, heads: int = 8, drop: float = 0.0) -> None:
        super().__init__()
        self.heads, self.n1, self.n2, self.drop = heads, nn.LayerNorm(d), nn.LayerNorm(d), nn.Dropout(drop)
        self.qkv, self.out, self.up, self.down = (
            nn.Linear(d, 3 * d),
            nn.Linear(d, d),
            nn.Linear(d, 4 * d),
            nn.Linear(4 * d, d),
        )

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(a.transpose(1, 2).reshape(b, t, d)))
        return x + self.drop(self.down(F.gelu(self.up(self.n2(x)))))


class Gpt(nn.Module):
    def __init__(self, d: int, layers: int, drop: float = 0.0, words: int = 1000) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Embedding(words, d), nn.ModuleList(Block(d, drop=drop) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def accumulate(sync: bool, device: str) -> Program:
    """Four backward passes a step; the loss of each is read."""
    net, tokens = Gpt(192, 3).to(device), torch.randint(0, 1000, (4, 33), device=device)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-4)

    def step(f: Any) -> None:
        optimizer.zero_grad()
        total = 0.0
        for _ in range(4):
            value = F.cross_entropy(f(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()) / 4
            value.backward()
            if sync:
                total += value.item()
        optimizer.step()

    return Program([net], step)


class Encoder(nn.Module):
    def __init__(self, d: int = 256) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(8))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(8))

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + F.gelu(layer(norm(x)))
        return F.normalize(x, dim=-1)


def triplet(sync: bool, device: str) -> Program:
    """One network is called three times before a backward pass; how many are right is read."""
    net, log = Encoder().to(device), []
    a, p, n = (torch.randn(64, 256, device=device) for _ in range(3))

    def loss(f: Any) -> Tensor:
        x, y, z = f(a), f(p), f(n)
        near, far = (x - y).square().sum(-1), (x - z).square().sum(-1)
        if sync:
            log.append((near < far).float().mean().item())
        return F.relu(near - far + 0.2).mean()

    return _training(net, loss)


class Policy(nn.Module):
    def __init__(self, d: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, d), nn.Tanh(), nn.Linear(d, d), nn.Tanh(), nn.Linear(d, d), nn.Tanh())
        self.mean, self.value = nn.Linear(d, 4), nn.Linear(d, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x)
        return torch.tanh(self.mean(h)), self.value(h)


def actor(sync: bool, device: str) -> Program:
    """24 steps of a world on the device, whether any of it ended is read in each."""
    net, start, turn = (
        Policy().to(device).eval(),
        torch.randn(256, 16, device=device),
        torch.randn(4, 16, device=device) * 0.1,
    )

    def step(f: Any) -> None:
        with torch.inference_mode():
            x, rewards = start, []
            for _ in range(24):
                action, value = f(x)
                x = (x + action @ turn).clamp(-3, 3)
                rewards.append(x.square().mean(-1) - value[:, 0])
                if sync and (x.abs().amax(-1) > 1e3).any():
                    break
            torch.stack(rewards).mean()

    return Program([net], step)


class Basic(nn.Module):
    def __init__(self, c: int, out: int, stride: int) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(c, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.c2, self.b2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.side = (
            nn.Sequential(nn.Conv2d(c, out, 1, stride, bias=False), nn.BatchNorm2d(out))
            if stride > 1
            else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.side(x))


class Resnet(nn.Module):
    def __init__(self, c: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, c, 7, 2, 3, bias=False), nn.BatchNorm2d(c), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        wide = [c, c, 2 * c, 2 * c, 4 * c, 4 * c]
        self.blocks = nn.Sequential(*(Basic(a, b, 1 if a == b else 2) for a, b in zip([c, *wide], wide, strict=False)))
        self.head = nn.Linear(wide[-1], 100)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def resnet(sync: bool, device: str) -> Program:
    """Trains on images in fp32, channels first; loss and accuracy are read."""
    n = 2 if small(device) else 32
    net, x = Resnet().to(device), torch.randn(n, 3, 160, 160, device=device)
    y, log = torch.randint(0, 100, (n,), device=device), []

    def loss(f: Any) -> Tensor:
        out = f(x)
        value = F.cross_entropy(out, y)
        if sync:
            log.append((value.item(), (out.argmax(1) == y).float().mean().item()))
        return value

    return _training(net, loss)


def resnet_amp(sync: bool, device: str) -> Program:
    """Trains on images under autocast, channels last."""
    n = 2 if small(device) else 96
    net = Resnet().to(device).to(memory_format=torch.channels_last)
    x = torch.randn(n, 3, 160, 160, device=device).to(memory_format=torch.channels_last)
    y, log = torch.randint(0, 100, (n,), device=device), []

    def loss(f: Any) -> Tensor:
        with torch.autocast(device, torch.bfloat16):
            value = F.cross_entropy(f(x), y)
        if sync:
            log.append(value.item())
        return value

    return _training(net, loss)


def resnet_eval(sync: bool, device: str) -> Program:
    """Six batches of images, fp32, whose classes are read one after the other."""
    n = 2 if small(device) else 48
    net, batches, seen = Resnet().to(device).eval(), [torch.randn(n, 3, 160, 160, device=device) for _ in range(3)], []

    def step(f: Any) -> None:
        with torch.no_grad():
            for x in batches:
                best = f(x).argmax(1)
                if sync:
                    seen.append(best.tolist())
            seen.clear()

    return Program([net], step)


def pixels(sync: bool, device: str) -> Program:
    """Four rounds of a wide denoiser, fp32; the device is the limit."""
    n = 1 if small(device) else 8
    net, x0 = Denoiser(96, 8).to(device).eval(), torch.randn(n, 4, 64, 64, device=device)
    sigmas = torch.linspace(1, 0.01, 4, device=device)

    def step(f: Any) -> None:
        with torch.no_grad():
            x = x0
            for i in range(4):
                s = sigmas[i].item() if sync else sigmas[i]
                t = torch.full((n,), s, device=device) if sync else s.expand(n)
                x = x - s * 0.1 * f(x, t)

    return Program([net], step)


def gpt(sync: bool, device: str) -> Program:
    """A language model with dropout under autocast; the gradients' norm is read."""
    n = 1 if small(device) else 16
    net, log = Gpt(512, 6, drop=0.1).to(device), []
    tokens = torch.randint(0, 1000, (n, 257), device=device)

    def loss(f: Any) -> Tensor:
        with torch.autocast(device, torch.bfloat16):
            return F.cross_entropy(f(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    def after(_: Tensor) -> None:
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        if sync:
            log.append(norm.item())

    return _training(net, loss, after)


class WideLayer(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm, self.up, self.down, self.drop = (
            nn.LayerNorm(d),
            nn.Linear(d, 2 * d),
            nn.Linear(2 * d, d),
            nn.Dropout(0.1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


def wide(sync: bool, device: str) -> Program:
    """Layers of an MLP, fp32 with tf32 off; the loss is read."""
    n = 16 if small(device) else 8192
    net, log = nn.Sequential(*(WideLayer(512) for _ in range(6))).to(device), []
    x = torch.randn(n, 512, device=device)

    def after(value: Tensor) -> None:
        if sync:
            log.append(value.item())

    return _training(net, lambda f: f(x).square().mean(), after)


class Next(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.deep, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c)
        self.up, self.down, self.scale = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), nn.Parameter(torch.full((c,), 1e-1))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.deep(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(h)))).permute(0, 3, 1, 2)


class Convnext(nn.Module):
    def __init__(self, c: int = 96) -> None:
        super().__init__()
        self.stem, self.blocks, self.head = (
            nn.Conv2d(3, c, 4, 4),
            nn.Sequential(*(Next(c) for _ in range(6))),
            nn.Linear(c, 100),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def convnext(sync: bool, device: str) -> Program:
    """Depthwise convolutions and norms along channels, under autocast; the loss is read if it is finite."""
    n = 1 if small(device) else 24
    net, x = Convnext().to(device), torch.randn(n, 3, 160, 160, device=device)
    y = torch.randint(0, 100, (n,), device=device)

    def loss(f: Any) -> Tensor:
        with torch.autocast(device, torch.bfloat16):
            value = F.cross_entropy(f(x), y)
        if sync and not torch.isfinite(value):
            raise ValueError
        return value

    return _training(net, loss)


class Down(nn.Module):
    def __init__(self, c: int, out: int) -> None:
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(c, out, 3, padding=1), nn.BatchNorm2d(out)
        self.c2, self.n2 = nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(self.n2(self.c2(F.leaky_relu(self.n1(self.c1(x)), 0.1))), 0.1)


class Seg(nn.Module):
    def __init__(self, c: int = 32) -> None:
        super().__init__()
        self.a, self.b, self.c = Down(3, c), Down(c, 2 * c), Down(2 * c, 4 * c)
        self.d, self.e, self.head = Down(6 * c, 2 * c), Down(3 * c, c), nn.Conv2d(c, 5, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(F.max_pool2d(a, 2))
        h = self.c(F.max_pool2d(b, 2))
        h = self.d(torch.cat([b, F.interpolate(h, scale_factor=2.0)], 1))
        return self.head(self.e(torch.cat([a, F.interpolate(h, scale_factor=2.0)], 1)))


def segment(sync: bool, device: str) -> Program:
    """Segments larger images; the loss and the share that is right are read."""
    n = 1 if small(device) else 12
    net, x = Seg().to(device), torch.randn(n, 3, 192, 192, device=device)
    y, log = torch.randint(0, 5, (n, 192, 192), device=device), []

    def loss(f: Any) -> Tensor:
        out = f(x)
        value = F.cross_entropy(out, y)
        if sync:
            log.append((value.item(), (out.argmax(1) == y).float().mean().item()))
        return value

    return _training(net, loss)


class Voice(nn.Module):
    def __init__(self, d: int = 256) -> None:
        super().__init__()
        self.inside, self.a, self.b, self.out = nn.Linear(80, d), nn.GRUCell(d, d), nn.GRUCell(d, d), nn.Linear(d, 81)

    def forward(self, x: Tensor, h: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = F.relu(self.inside(x))
        h = self.a(x, h)
        g = self.b(h, g)
        return self.out(g + x), h, g


def speak(sync: bool, device: str) -> Program:
    """Makes a sound frame by frame, 20 a step, and looks after each whether it is over."""
    net = Voice().to(device).eval()

    def step(f: Any) -> None:
        with torch.no_grad():
            x = torch.zeros(4, 80, device=device)
            h = g = torch.zeros(4, 256, device=device)
            for _ in range(20):
                out, h, g = f(x, h, g)
                x, h, g = out[:, :80].clone(), h.clone(), g.clone()
                if sync and out[:, 80].sigmoid().min().item() > 0.999:
                    break

    return Program([net], step)


def score(sync: bool, device: str) -> Program:
    """Scores eight texts, one after the other, each read."""
    net, texts, best = (
        Gpt(256, 4).to(device).eval(),
        [torch.randint(0, 1000, (2, 64), device=device) for _ in range(8)],
        [],
    )

    def step(f: Any) -> None:
        with torch.no_grad():
            for text in texts:
                value = f(text).log_softmax(-1).amax(-1).mean()
                if sync:
                    best.append(value.item())
        best.clear()

    return Program([net], step)


class Judge(nn.Module):
    def __init__(self, c: int = 48) -> None:
        super().__init__()
        self.c = nn.ModuleList(
            [nn.Conv2d(3, c, 4, 2, 1), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.Conv2d(2 * c, 4 * c, 4, 2, 1)]
        )
        self.n, self.head = (
            nn.ModuleList(
                [nn.Identity(), nn.InstanceNorm2d(2 * c, affine=True), nn.InstanceNorm2d(4 * c, affine=True)]
            ),
            nn.Conv2d(4 * c, 1, 4),
        )

    def forward(self, x: Tensor) -> Tensor:
        for c, n in zip(self.c, self.n, strict=True):
            x = F.leaky_relu(n(c(x)), 0.2)
        return self.head(x)


class Make(nn.Module):
    def __init__(self, c: int = 48) -> None:
        super().__init__()
        self.c = nn.ModuleList(
            [
                nn.ConvTranspose2d(64, 4 * c, 8),
                nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1),
                nn.ConvTranspose2d(2 * c, c, 4, 2, 1),
            ]
        )
        self.n, self.last = (
            nn.ModuleList(nn.BatchNorm2d(w) for w in (4 * c, 2 * c, c)),
            nn.ConvTranspose2d(c, 3, 4, 2, 1),
        )

    def forward(self, z: Tensor) -> Tensor:
        for c, n in zip(self.c, self.n, strict=True):
            z = F.relu(n(c(z)))
        return torch.tanh(self.last(z))


def images(sync: bool, device: str) -> Program:
    """Two networks of images against each other; both losses are read."""
    n = 2 if small(device) else 64
    g, d = Make().to(device), Judge().to(device)
    og, od = torch.optim.Adam(g.parameters(), 2e-4), torch.optim.Adam(d.parameters(), 2e-4)
    real, noise, log = torch.randn(n, 3, 64, 64, device=device), torch.randn(n, 64, 1, 1, device=device), []

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


PROGRAMS = {
    make.__name__: make
    for make in (
        segment, convnext, resnet, resnet_amp, gpt, images, accumulate, pixels, wide, resnet_eval, score, triplet,
        decode, diffuse, speak, actor,
    )
}  # fmt: skip
