"""Assignments through the indices of hits."""

from __future__ import annotations

from syncscan.fixing.rewrites.masked_assignments import nonzero_assignment
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = nonzero_assignment
END = "\nresult = x.tolist(), y.tolist()"
FIXED = {
    ("i, j = (x > 0.9).nonzero(as_tuple=True)\nx[i, j] = 0.0"): ("hits = x > 0.9\nx[hits] = 0.0"),
    ("i, j = torch.where(x > 0.5)\nx[i, j] = y.mean()"): ("hits = x > 0.5\nx.copy_(torch.where(hits, y.mean(), x))"),
    ("bad = (x.mean(-1) < 0.5).nonzero().squeeze(1)\nx[bad] = 2.5"): ("bad = x.mean(-1) < 0.5\nx[bad] = 2.5"),
    ("bad = torch.nonzero(x[:, 0] < 0.5)[:, 0]\nx[bad] = 2.5"): ("bad = x[:, 0] < 0.5\nx[bad] = 2.5"),
    ("bad = torch.where(x.mean(-1) < 0.5)[0]\nx[bad] = 2.5"): ("bad = x.mean(-1) < 0.5\nx[bad] = 2.5"),
    ("x[(x > 0.9).nonzero(as_tuple=True)] = 0.0"): ("x[x > 0.9] = 0.0"),
    ("x[torch.where(x > 0.5)] = y.mean()"): ("x.copy_(torch.where(x > 0.5, y.mean(), x))"),
    ("x[torch.where(x.mean(-1) < 0.5)[0]] = y.mean()"): (
        "x.copy_(torch.where((x.mean(-1) < 0.5)[..., None], y.mean(), x))"
    ),
}
KEPT = {
    "a matrix of hits as the index": ("x[(x[:, 0] > 0.5).nonzero()] = 0.0"),
    "hits of another shape": ("x[torch.where(y[:, 0] > 0.5)[0], torch.where(y[0, :4] > 0.5)[0]] = 0.0"),
    "the indices are a column of two": ("bad = (x > 0.9).nonzero()[:, 0]\nx[bad] = 0.0"),
    "the indices stay a matrix": ("bad = (x[:, 0] > 0.9).nonzero()\nx[bad] = 0.0"),
    "the indices are counted": ("i, j = (x > 0.9).nonzero(as_tuple=True)\nx[i, j] = 0.0\ny *= len(i)"),
    "the indices are used in another order": (
        "x = x[:, :4].clone()\ni, j = (x > 0.5).nonzero(as_tuple=True)\nx[j, i] = 0.0"
    ),
    "the indices are read": ("i, j = (x > 0.9).nonzero(as_tuple=True)\ny[0, 0] = x[i, j].sum()\nx[i, j] = 0.0"),
    "a matrix of indices": ("places = (x > 0.9).nonzero()\nx[places[:, 0], places[:, 1]] = 0.0"),
    "as many values as hits": ("i, j = (x > 0.5).nonzero(as_tuple=True)\nx[i, j] = torch.rand(len(i), device=device)"),
    "only one of two dimensions": ("i, j = (x > 0.9).nonzero(as_tuple=True)\nx[i] = 0.0"),
    "the condition changes in between": (
        "bad = torch.where(x.mean(-1) < 0.5)[0]\nkept = bad\nx[bad] = 2.5\ny *= kept.numel()"
    ),
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
