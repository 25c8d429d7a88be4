"""Names that lead past a clock while a recording is open."""

from __future__ import annotations

import threading

import pytest

from syncscan.capture import lines, waits_by_name
from syncscan.capture.lines_table import lines_table

torch = pytest.importorskip("torch")


def act() -> None:
    """One of each that a CPU can do."""
    torch.unique(torch.ones(2, 2), dim=0)
    torch.eye(2).to_sparse().coalesce()


def test_each_call_is_timed_and_has_its_line() -> None:
    """Through torch's own Python wrapper, where there is one."""
    lines.begin()
    act()
    recording = lines.end()
    assert recording is not None
    table = lines_table(recording)
    stacks = [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["calls"]]
    here = [next(line for file, line, _ in stack if file == __file__) - act.__code__.co_firstlineno for stack in stacks]
    assert here == [2, 3]
    assert all(begin < end and tid == threading.get_native_id() for begin, end, tid, _ in table["calls"])
    assert not [file for stack in stacks for file, _, _ in stack if file == waits_by_name.__file__]


def test_results_are_the_same() -> None:
    """Nothing but the time is taken."""
    x = torch.tensor([[1, 2], [1, 2], [0, 1]])
    plain = torch.unique(x, dim=0, return_counts=True)
    lines.begin()
    noted = torch.unique(x, dim=0, return_counts=True)
    lines.end()
    assert [a.tolist() for a in noted] == [a.tolist() for a in plain]


def test_everything_is_put_back() -> None:
    """Own attributes and inherited ones."""
    before = (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), "unique_dim" in vars(torch._VF))
    undo = waits_by_name.watch_calls(lambda begin, end: None)
    undo()
    assert (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), "unique_dim" in vars(torch._VF)) == before
