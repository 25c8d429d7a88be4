"""Cross entropies of masked elements: gradients, ignored targets, and what stays."""

from __future__ import annotations

from syncscan.fixing.rewrites.masked_sums import masked_loss
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = masked_loss
_LABELS = "import torch.nn as nn\nimport torch.nn.functional as F\nhits, labels = mask[:, 0], y.argmax(1)\n"
_GRADIENT = "\nloss.backward()\nresult = float(loss), x.grad.tolist()"
FIXED = {
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
    _LABELS + "result = F.cross_entropy(torch.stack([x, y], -1)[mask], (x > y).long()[mask], reduction='sum')": (
        _LABELS + "result = F.cross_entropy(torch.where(mask[..., None], torch.stack([x, y], -1), 0).flatten(0, 1), "
        "(x > y).long().masked_fill(~mask, -100).flatten(), reduction='sum')"
    ),
}
KEPT = {
    "two masks": _LABELS + "result = F.cross_entropy(x[hits], labels[hits & (mask.sum() > 0)])",
    "each element's loss": _LABELS + 'result = F.cross_entropy(x[hits], labels[hits], reduction="none").sum()',
    "half precision": _LABELS + "result = F.cross_entropy(x.half()[hits], labels[hits])",
    "predictions that are used again": _LABELS + "picked = x[hits]\nresult = F.cross_entropy(picked, labels[hits])",
    "targets that are ignored already": _LABELS + "result = F.cross_entropy(x[hits], labels[hits], ignore_index=2)",
    "targets that are probabilities": _LABELS + "result = F.cross_entropy(x[hits], y[hits])",
    "a loss that isn't 0 for zeros": _LABELS + "result = F.binary_cross_entropy_with_logits(x[mask], y[mask])",
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
