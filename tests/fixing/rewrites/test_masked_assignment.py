"""Assignments through a mask: which become a torch.where, and which need the number of matches."""

from __future__ import annotations

from syncscan.fixing.rewrites.masked_assignments import masked_assignment
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = masked_assignment
END = "\nresult = x.tolist()"
FIXED = {
    "x[mask] = y[mask]": "x.copy_(torch.where(mask, y, x))",
    "x[mask] *= 4.0": "x.copy_(torch.where(mask, x * 4.0, x))",
    "x[mask] = y.mean()": "x.copy_(torch.where(mask, y.mean(), x))",
    "x[mask] = y[mask] * 2 + 1": "x.copy_(torch.where(mask, y * 2 + 1, x))",
    "x[mask[:, 0]] = y[mask[:, 0]]": "x.copy_(torch.where(mask[:, 0][..., None], y, x))",
    "x[mask] = y[mask] / y[mask].sum()": "x.copy_(torch.where(mask, y / y[mask].sum(), x))",
    "x[mask] = y[:, :1].expand(4, 6)[mask]": "x.copy_(torch.where(mask, y[:, :1].expand(4, 6), x))",
    "x[mask[:, 0]] = y.mean(0)": "x.copy_(torch.where(mask[:, 0][..., None], y.mean(0), x))",
    ("view = x.t()\nx[mask] = y[mask]\nx = view"): ("view = x.t()\nx.copy_(torch.where(mask, y, x))\nx = view"),
    ("x = torch.zeros(4, dtype=torch.int64, device=device)\nx[mask[:, 0]] += 1"): (
        "x = torch.zeros(4, dtype=torch.int64, device=device)\nx.copy_(torch.where(mask[:, 0], x + 1, x))"
    ),
}
KEPT = {
    "as many values as hits": "x[mask] = torch.rand(int(mask.sum()), device=device)",
    "a sorted selection": "x[mask] = y[mask].sort().values",
    "a cumulative sum": "x[mask] = y[mask].cumsum(0)",
    "another mask with as many hits": ("other = mask.clone()\nx[mask] = y[other]"),
    "a number through a mask is a fill": "x[mask] = 0.5",
    "a mask on the host": ("x = torch.rand(4)\nx[x > 0.5] = x[x > 0.5] * 2"),
    "the mask is made with a side effect": ('def pick():\n    print(end="")\n    return mask\nx[pick()] = y[mask]'),
    "random numbers for the hits": "x[mask] = torch.rand_like(y[mask])",
    "a row of as many elements as hits": "x[mask] = torch.arange(24.0, device=device)[: mask.sum()]",
}


@each("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@each("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name] + END
