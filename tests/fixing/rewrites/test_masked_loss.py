"""Losses of masked elements: empty masks, gradients, cross entropies with ignored targets, and what stays."""

from __future__ import annotations

from syncscan.fixing.rewrites import masked_loss
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = masked_loss
_LABELS = "import torch.nn as nn\nimport torch.nn.functional as F\nhits, labels = mask[:, 0], y.argmax(1)\n"
_GRADIENT = "\nloss.backward()\nresult = float(loss), x.grad.tolist()"
FIXED = {
    _LABELS + "result = F.mse_loss(x[mask], y[mask])": (
        _LABELS + 'result = F.mse_loss(torch.where(mask, x, 0), torch.where(mask, y, 0), reduction="sum") / mask.sum()'
    ),
    _LABELS + "empty = mask & (x > 9)\nresult = F.l1_loss(x[empty], y[empty])": (
        _LABELS + "empty = mask & (x > 9)\n"
        'result = F.l1_loss(torch.where(empty, x, 0), torch.where(empty, y, 0), reduction="sum") / empty.sum()'
    ),
    _LABELS + 'result = nn.functional.smooth_l1_loss(x[hits], 2 * y[hits], reduction="sum", beta=0.5) / 3': (
        _LABELS + "result = nn.functional.smooth_l1_loss(torch.where(hits[..., None], x, 0), "
        'torch.where(hits[..., None], 2 * y, 0), beta=0.5, reduction="sum") / 3'
    ),
    _LABELS + "result = 3 * F.mse_loss(x[hits], y[hits])": (
        _LABELS + "result = 3 * (F.mse_loss(torch.where(hits[..., None], x, 0), torch.where(hits[..., None], y, 0), "
        'reduction="sum") / hits[..., None].expand_as(x).sum())'
    ),
    _LABELS + "x[~mask] = float('nan')\nx.requires_grad_()\nloss = F.mse_loss(x[mask], y[mask])" + _GRADIENT: (
        _LABELS + "x[~mask] = float('nan')\nx.requires_grad_()\n"
        'loss = F.mse_loss(torch.where(mask, x, 0), torch.where(mask, y, 0), reduction="sum") / mask.sum()' + _GRADIENT
    ),
    _LABELS + "result = F.cross_entropy(x[hits], labels[hits], label_smoothing=0.1)": (
        _LABELS + "result = F.cross_entropy(torch.where(hits[..., None], x, 0), labels.masked_fill(~hits, -100), "
        "label_smoothing=0.1)"
    ),
    _LABELS
    + "x[~hits] = float('nan')\nx.requires_grad_()\nloss = F.cross_entropy(x[hits], labels[hits])"
    + _GRADIENT: (
        _LABELS + "x[~hits] = float('nan')\nx.requires_grad_()\n"
        "loss = F.cross_entropy(torch.where(hits[..., None], x, 0), labels.masked_fill(~hits, -100))" + _GRADIENT
    ),
    _LABELS + "result = F.nll_loss(x.log()[y[:, 1] > 2], labels[y[:, 1] > 2])": (
        _LABELS + "hits_2 = y[:, 1] > 2\n"
        "result = F.nll_loss(torch.where(hits_2[..., None], x.log(), 0), labels.masked_fill(~hits_2, -100))"
    ),
    _LABELS + "criterion = nn.CrossEntropyLoss(reduction='sum')\n"
    "result = criterion(torch.stack([x, y], -1)[mask], (x > y).long()[mask])": (
        _LABELS + "criterion = nn.CrossEntropyLoss(reduction='sum')\n"
        "result = criterion(torch.where(mask[..., None], torch.stack([x, y], -1), 0).flatten(0, 1), "
        "(x > y).long().masked_fill(~mask, -100).flatten())"
    ),
    _LABELS + "criterion = nn.MSELoss()\nresult = criterion(x[mask], y[mask])": (
        _LABELS + "criterion = nn.MSELoss()\n"
        "result = (criterion(torch.where(mask, x, 0), torch.where(mask, y, 0)) * (mask.numel() / mask.sum()))"
    ),
}
KEPT = {
    "two masks": _LABELS + "result = F.mse_loss(x[mask], y[mask & (mask.sum() > 0)])",
    "each element's loss": _LABELS + 'result = F.mse_loss(x[mask], y[mask], reduction="none").sum()',
    "targets that are ignored already": _LABELS + "result = F.cross_entropy(x[hits], labels[hits], ignore_index=2)",
    "a module that ignores targets": (
        _LABELS + "criterion = nn.CrossEntropyLoss(ignore_index=2)\nresult = criterion(x[hits], labels[hits])"
    ),
    "a module that the program chooses": (
        _LABELS + "criterion = nn.MSELoss()\nif len(x) > 2:\n    criterion = nn.L1Loss()\n"
        "result = criterion(x[mask], y[mask])"
    ),
    "a module's mean in double precision": (
        _LABELS + "criterion = nn.MSELoss()\nresult = criterion(x.double()[mask], y.double()[mask])"
    ),
    "targets that are probabilities": _LABELS + "result = F.cross_entropy(x[hits], y[hits])",
    "half precision": _LABELS + "result = F.mse_loss(x.half()[mask], y.half()[mask])",
    "targets of another shape": _LABELS + "result = F.mse_loss(x[hits], y[hits].sum(1, keepdim=True))",
    "a loss that isn't 0 for zeros": _LABELS + "result = F.binary_cross_entropy_with_logits(x[mask], y[mask])",
    "predictions that are used again": _LABELS + "picked = x[mask]\nresult = F.mse_loss(picked, y[mask])",
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
