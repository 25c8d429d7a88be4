"""Guards by mask.any() around what does nothing without a hit."""

from __future__ import annotations

from syncscan.fixing.rewrites.masked_assignments import any_guard
from tests.each import each
from tests.fixing.example import Rewritten

REWRITE = any_guard
END = "\nresult = x.tolist()"
FIXED = {
    ("if bool(mask.any()):\n    x[mask] = 0.5"): "x[mask] = 0.5",
    ("if mask.any():\n    x = x.masked_fill(mask, 0.5)"): "x = x.masked_fill(mask, 0.5)",
    ("if (x > 0.9).any():\n    x.masked_fill_(x > 0.9, 0.5)"): "x.masked_fill_(x > 0.9, 0.5)",
    ("if torch.any(mask):\n    x[mask] = 0.5"): "x[mask] = 0.5",
    ("bad = x > 9\nif bad.any():\n    x[bad] = 0.0"): "bad = x > 9\nx[bad] = 0.0",
    ("if mask.any():\n    x[mask] = y[mask] * 2"): "x[mask] = y[mask] * 2",
}
KEPT = {
    "a part of the mask": ("if mask.any():\n    x = x.masked_fill(mask[:, :1], 0.5)"),
    "a row of the mask": ("if mask.any():\n    x = x.masked_fill(mask[0], 0.5)"),
    "a value that raises without hits": ("if mask.any():\n    x[mask] = x[mask].max()"),
    "the assignment never ran": ("bad = x > 9\nif bad.any():\n    x[bad] = y[bad]"),
    "it also prints": ('if mask.any():\n    print(end="")\n    x = x.masked_fill(mask, 0.5)'),
    "there is an else": ("if mask.any():\n    x = x.masked_fill(mask, 0.5)\nelse:\n    x = x + 1"),
    "another mask": ("if mask.any():\n    x = x.masked_fill(~mask, 0.5)"),
    "another tensor": ("if mask.any():\n    x = y.masked_fill(mask, 0.5)"),
    "all instead of any": ("if mask.all():\n    x = x.masked_fill(mask, 0.5)"),
    "not any": ("if not mask.any():\n    x = x.masked_fill(mask, 0.5)"),
    "a sum over all elements changes without hits": ("if mask.any():\n    x = x - x[mask].mean()"),
    "the filled tensor is written to later": (
        "alias = x\nif mask.any():\n    x = x.masked_fill(mask, 0.5)\nx += 1\nx = alias"
    ),
    "no hit, and the tensor may have changed its shape": (
        "bad = x > 9\nif bad.any():\n    x = x.masked_fill(bad, 0.0)"
    ),
    "no hit, and the tensor lies on the host": ("z, bad = x.cpu(), x > 9\nif bad.any():\n    z[bad] = 0.0"),
    "a dimension of any": ("if mask.any(dim=0)[0]:\n    x = x.masked_fill(mask, 0.5)"),
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
