"""Sums and means of masked elements: empty masks, broadcasting, and what stays."""

from __future__ import annotations

from syncscan.fixing.rewrites.masked_sums import masked_reduction
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = masked_reduction
FIXED = {
    "result = x[mask].mean()": "result = torch.where(mask, x, 0).sum() / mask.sum()",
    "result = x[mask].sum()": "result = torch.where(mask, x, 0).sum()",
    "result = x[mask].sum() / 24": "result = torch.where(mask, x, 0).sum() / 24",
    "result = (x[mask] - y[mask]).abs().sum()": "result = torch.where(mask, (x - y).abs(), 0).sum()",
    "result = x[x > 2].mean()": ("hits = x > 2\nresult = torch.where(hits, x, 0).sum() / hits.sum()"),
    "result = x[x > 2].sum()": "result = torch.where(x > 2, x, 0).sum()",
    "result = x[mask[:, 0]].mean(0)": (
        "hits = mask[:, 0]\nresult = torch.where(hits[..., None], x, 0).sum(0) / hits.sum()"
    ),
    "means = []\nmeans.append(x[mask & (x < 1)].mean())\nresult = means": (
        "means = []\nhits = mask & (x < 1)\nmeans.append(torch.where(hits, x, 0).sum() / hits.sum())\nresult = means"
    ),
    "result = 2 / x[mask].mean()": "result = 2 / (torch.where(mask, x, 0).sum() / mask.sum())",
    "result = (-(x[mask] - y[mask])).sum()": "result = torch.where(mask, -(x - y), 0).sum()",
    "result = (x.round()[mask] == y.round()[mask]).sum()": (
        "result = torch.where(mask, x.round() == y.round(), 0).sum()"
    ),
    "result = (x.argmax(0)[mask[0]] == 2).float().mean()": (
        "hits = mask[0]\nresult = torch.where(hits, (x.argmax(0) == 2).float(), 0).sum() / hits.sum()"
    ),
    "result = (~(x[mask].lt(0.7) & (y[mask] > 0.2))).sum()": (
        "result = torch.where(mask, ~(x.lt(0.7) & (y > 0.2)), 0).sum()"
    ),
    "result = (y < 0.5)[mask].sum()": "result = torch.where(mask, y < 0.5, 0).sum()",
    "result = torch.masked_select(x, mask).mean()": "result = torch.where(mask, x, 0).sum() / mask.sum()",
    "result = ((x - y) ** 2).masked_select(mask).sum()": "result = torch.where(mask, (x - y) ** 2, 0).sum()",
    "result = torch.masked_select((x - y) ** 2, mask).abs().sum() / 3": (
        "result = torch.where(mask, ((x - y) ** 2).abs(), 0).sum() / 3"
    ),
    (
        "x.requires_grad_()\nloss = torch.masked_select((x - y).abs(), mask).sum()\n"
        "loss.backward()\nresult = x.grad.tolist()"
    ): (
        "x.requires_grad_()\nloss = torch.where(mask, (x - y).abs(), 0).sum()\n"
        "loss.backward()\nresult = x.grad.tolist()"
    ),
}
KEPT = {
    "a selection by a mask that is broadcast": "result = torch.masked_select(x, mask[0]).mean()",
    "a tensor that the selection broadcasts": "result = torch.masked_select(x[0], mask).sum()",
    "the largest raises without hits": "result = x[mask].max()",
    "the smallest raises without hits": "result = x[mask].min()",
    "half precision overflows elsewhere": ("x = x.half()\nresult = x[mask].sum()"),
    "a median": "result = x[mask].median()",
    "a product": "result = x[mask].prod()",
    "a deviation": "result = x[mask].std()",
    "selected elements that are used again": ("picked = x[mask]\nresult = picked.sum() + len(picked)"),
    "a mask on the host": ("x = torch.rand(4)\nresult = x[x > 0.5].mean()"),
    "a mean of another dtype": "result = x[mask].mean(dtype=torch.float64)",
    "random numbers among the hits": "result = (x[mask] * torch.rand_like(x[mask])).sum()",
    "a logarithm with a gradient is infinite without hits": (
        "x.requires_grad_()\nloss = x[mask].log().sum()\nloss.backward()\nresult = x.grad.tolist()"
    ),
    "comparisons of what two masks select": "result = (x[mask] > y[mask & (mask.sum() > 0)]).sum()",
    "a mask that an argument before it changes": ("result = torch.stack([x.mul_(0.5).sum(), x[x > 0.4].mean()])"),
    "a mask that the target changes": (
        "parts = {0: 0}\ndef key():\n    x.mul_(0.5)\n    return 0\nparts[key()] += x[x > 0.4].mean()\nresult = parts"
    ),
    "a comprehension": ("masks = [mask, ~mask]\nresult = [float(x[m & mask].mean()) for m in masks]"),
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name]
