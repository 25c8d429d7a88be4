"""A step that waits for the device in many ways, one a line, in user functions, modules, hooks, threads and libraries.

A line that ends in `# syncs` waits, and torch's sync debug mode warns of it; one that ends in `# syncs unseen` waits
and the mode doesn't know. What waits `in backward` belongs to the line of the forward op. In a recording of `step` the
exact lines must be those, and no others of this file: the lines mustn't move without recording anew.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

DEVICE = "cuda"


class Router(nn.Module):
    """Sends the rows that score high through a layer of their own."""

    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.expert = nn.Linear(width, width)

    def forward(self, rows):
        chosen = self.score(rows).squeeze(-1) > 0
        picked = rows[chosen]  # syncs
        return rows.index_put(  # syncs
            (chosen,),  # the call's own line counts, not its arguments'
            self.expert(picked),
        )


class Pooled(nn.Module):
    """Averages each segment, whose lengths live on the device."""

    def forward(self, rows, lengths):
        ids = torch.repeat_interleave(lengths)  # syncs
        return rows.new_zeros(len(lengths), rows.shape[1]).index_add(0, ids, rows[: len(ids)])


class Doubled(torch.autograd.Function):
    """Looks at its gradient on the way back."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        if grad.isnan().any():  # syncs
            raise ArithmeticError("nan")
        return grad * 2


class Model(nn.Module):
    """The modules above, one after the other."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), Router(width))
        self.pool = Pooled()

    def forward(self, rows, lengths):
        rows = self.inner(rows)
        rows = checkpoint(self.recomputed, rows, use_reentrant=False)
        rows = Doubled.apply(rows)
        return self.pool(rows, lengths)

    def recomputed(self, rows):
        peak = rows.abs().max().item()  # syncs
        return rows / max(peak, 1.0)


def read_backs(x, ints):
    """Values that go to the host."""
    total = x.sum().item()  # syncs
    total += float(x.mean())  # syncs
    total += int(ints.max())  # syncs
    if (x > 5).any():  # syncs
        total += 1
    total += sum(ints[:8].tolist())  # syncs
    total += x[0].cpu().numpy().sum()  # syncs
    text = str(x[0, :2])  # syncs
    total += sum(v.item() for v in x[0, :2])  # syncs
    total += ints[0] in [1, 2]  # syncs
    part = x[: ints[1]]  # syncs
    same = torch.equal(x, -x)  # syncs
    close = torch.allclose(x, x)  # syncs
    return total, text, part, same, close


def shapes(x, ints):
    """Results whose size depends on the values."""
    mask = x > 0
    found = torch.nonzero(mask)  # syncs
    rows, _ = torch.where(mask)  # syncs
    places = torch.argwhere(mask)  # syncs
    values = torch.masked_select(x, mask)  # syncs
    kinds = torch.unique(ints)  # syncs
    runs = torch.unique_consecutive(ints)  # syncs
    counts = torch.bincount(ints)  # syncs
    hot = F.one_hot(ints)  # syncs
    x = x.clone()
    x[mask] = values * 2  # syncs
    return found, rows, places, kinds, runs, counts, hot, x


def host_to_device(x, host):
    """Copies from memory that the device can't read by itself."""
    made = torch.tensor([1.0, 2.0, 3.0], device=DEVICE)  # syncs
    sent = host.to(DEVICE)  # syncs
    picked = x[torch.tensor([0, 2])]  # syncs
    return made, sent, picked


def explicit():
    """Waits that say so."""
    torch.cuda.synchronize()  # syncs unseen
    torch.cuda.current_stream().synchronize()  # syncs
    event = torch.cuda.Event()
    event.record()
    event.synchronize()  # syncs unseen


def checked(x):
    """Library code that looks at its input."""
    spd = x[:64, :64] @ x[:64, :64].T + 64 * torch.eye(64, device=DEVICE)
    lower = torch.linalg.cholesky(spd)  # syncs
    inverse = torch.linalg.inv(spd)  # syncs
    chance = torch.distributions.Categorical(probs=x[:4].softmax(-1))  # syncs
    torch.testing.assert_close(lower, lower)  # syncs
    return inverse, chance


def in_thread(pool, x):
    """A wait on a thread of the user's own."""

    def read():
        return x.sum().item()  # syncs

    return pool.submit(read).result()


def train(model, optimizer, scaler, rows, lengths):
    """A step with a gradient scaler and clipping."""
    with torch.autocast(DEVICE, torch.float16):
        out = model(rows, lengths)
        loss = out.float().square().mean()
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()  # syncs in backward
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)  # syncs
    scaler.step(optimizer)  # syncs
    scaler.update()


def build():
    """Make the tensors and the model, and return the step."""
    torch.manual_seed(0)
    x = torch.randn(256, 256, device=DEVICE)
    ints = torch.randint(0, 64, (1024,), device=DEVICE)
    host = torch.randn(512, 512)
    rows = torch.randn(256, 64, device=DEVICE, requires_grad=True)
    lengths = torch.full((16,), 16, device=DEVICE)
    model = Model(64).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=1.0)
    pool = ThreadPoolExecutor(1)

    def step():
        read_backs(x, ints)
        shapes(x, ints)
        host_to_device(x, host)
        explicit()
        checked(x)
        in_thread(pool, x)
        train(model, optimizer, scaler, rows, lengths)

    return step
