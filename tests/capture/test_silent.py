"""Names that lead through a note while a window is open."""

from __future__ import annotations

import pytest

from syncscan.capture import lines, silent
from syncscan.capture.table import lines_table

torch = pytest.importorskip("torch")


def act() -> None:
    """One of each that a CPU can do."""
    torch.unique(torch.ones(2, 2), dim=0)
    torch.eye(2).to_sparse().coalesce()


def test_each_call_is_noted_with_its_line() -> None:
    """Through torch's own Python wrapper, where there is one."""
    lines.begin()
    act()
    window = lines.end()
    assert window is not None
    table = lines_table(window)
    stacks = [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["syncs"]]
    here = [next(line for file, line, _ in stack if file == __file__) - act.__code__.co_firstlineno for stack in stacks]
    assert here == [2, 3]
    assert {row[2] for row in table["syncs"]} == {"call"}
    assert not [file for stack in stacks for file, _, _ in stack if file == silent.__file__]


def test_results_are_the_same() -> None:
    """The note stands before the call and changes nothing."""
    x = torch.tensor([[1, 2], [1, 2], [0, 1]])
    plain = torch.unique(x, dim=0, return_counts=True)
    lines.begin()
    noted = torch.unique(x, dim=0, return_counts=True)
    lines.end()
    assert [a.tolist() for a in noted] == [a.tolist() for a in plain]


def test_everything_is_put_back() -> None:
    """Own attributes and inherited ones."""
    before = (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), "unique_dim" in vars(torch._VF))
    undo = silent.watch(lambda: None)
    undo()
    assert (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), "unique_dim" in vars(torch._VF)) == before
