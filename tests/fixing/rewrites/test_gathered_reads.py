"""Numbers that a comprehension reads one by one."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import gathered_reads
from tests.fixing.example import Rewritten

REWRITE = gathered_reads
FIXED = {
    "result = sum(loss.item() for loss in losses)": (
        "result = sum(torch.stack(values).tolist() if (values := [loss for loss in losses]) else [])"
    ),
    "result = [int((row > 0.5).sum()) for row in x]": (
        "result = torch.stack(values).tolist() if (values := [(row > 0.5).sum() for row in x]) else []"
    ),
    "result = [bool((row > 0.9).any()) for row in x], 1": (
        "result = (torch.stack(values).tolist() if (values := [(row > 0.9).any() for row in x]) else []), 1"
    ),
    "result = [\n    loss.item()  # each\n    for loss in losses\n    if loss is not None\n]": (
        "result = torch.stack(values).tolist() if (values := [\n    loss  # each\n    for loss in losses\n"
        "    if loss is not None\n]) else []"
    ),
    "result = [x.add_(1).sum().item() for k in range(3)]": (
        "result = torch.stack(values).tolist() if (values := [x.add_(1).sum() for k in range(3)]) else []"
    ),
    "one = x[0, 0]\nresult = [one.add_(1).item() for k in range(3)]": (
        "one = x[0, 0]\n"
        "result = torch.stack(values).tolist() if (values := [one.add_(1).clone() for k in range(3)]) else []"
    ),
    "result = {k: row.norm().item() for k, row in enumerate(x)}": (
        "result = dict(zip(values, torch.stack([*values.values()]).tolist())) "
        "if (values := {k: row.norm() for k, row in enumerate(x)}) else {}"
    ),
    "result = [{k: v.item() for k, v in zip('abb', losses)}, {k: v.item() for k, v in zip('ab', losses)}]": (
        "result = [(dict(zip(values, torch.stack([*values.values()]).tolist())) "
        "if (values := {k: v for k, v in zip('abb', losses)}) else {}), "
        "(dict(zip(values, torch.stack([*values.values()]).tolist())) "
        "if (values := {k: v for k, v in zip('ab', losses)}) else {})]"
    ),
    "x.requires_grad_()\nresult = [row.norm().item() for row in x]": (
        "x.requires_grad_()\n"
        "result = torch.stack(values).tolist() if (values := [row.norm().detach() for row in x]) else []"
    ),
    ("def norms(rows):\n    return max(row.norm().item() for row in rows)\nresult = norms(x), norms(y)"): (
        "def norms(rows):\n"
        "    return max(torch.stack(values).tolist() if (values := [row.norm() for row in rows]) else [])\n"
        "result = norms(x), norms(y)"
    ),
    ("def total(rows):\n    return sum(row.norm().item() for row in rows)\nresult = total(x), total([])"): (
        "def total(rows):\n"
        "    return sum(torch.stack(values).tolist() if (values := [row.norm() for row in rows]) else [])\n"
        "result = total(x), total([])"
    ),
}
KEPT = {
    "the host decides in between": "result = any(loss.item() > 0.5 for loss in losses)",
    "more is computed of each": "result = [round(loss.item(), 2) for loss in losses]",
    "they are read as another type": "result = [float((row > 0.5).sum()) for row in x]",
    "they are several numbers": "result = [row.tolist() for row in x]",
    "only one is read": "result = [loss.item() for loss in losses[:1]]",
    "it is a body of a class": "class Result:\n    values = [loss.item() for loss in losses]\nresult = Result.values",
    "tensors are picked among numbers": (
        "row = {'a': losses[0], 'b': losses[1], 'c': 2}\n"
        "result = {k: v.item() for k, v in row.items() if torch.is_tensor(v)}"
    ),
    "a generator is used lazily": "result = next(loss.item() for loss in losses)",
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body]
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name]
