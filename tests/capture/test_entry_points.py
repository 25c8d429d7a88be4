"""Names of torch that lead past a note, and back."""

from __future__ import annotations

import pytest

from syncscan.capture import lines, waits_by_name
from syncscan.capture.entry_points import replaced
from syncscan.capture.lines_table import lines_table

torch = pytest.importorskip("torch")


def test_own_and_inherited_names_are_put_back() -> None:
    """And what this torch doesn't have, or lets nobody change, is passed over."""
    places = [("torch.Tensor", "coalesce"), ("torch._C", "_cuda_emptyCache"), ("torch", "no_such_name")]
    places += [("torch.no.such.place", "name"), ("torch.Size", "numel")]
    before = (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), torch.Size.numel)
    undo = replaced((path, name, lambda original: lambda *a: original(*a)) for path, name in places)
    assert "coalesce" in vars(torch.Tensor)
    undo()
    assert (torch.Tensor.coalesce, "coalesce" in vars(torch.Tensor), torch.Size.numel) == before


def test_a_synchronize_by_name_is_noted_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """However `torch.cuda.synchronize` was imported; of an event with its address."""

    class Event:
        cuda_event = 7

        def synchronize(self) -> str:
            return "waited"

    monkeypatch.setattr(torch._C, "_cuda_synchronize", lambda: "drained", raising=False)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    imported = lambda: torch._C._cuda_synchronize()  # noqa: E731

    def step() -> list[str]:
        return [
            imported(),
            Event().synchronize(),
        ]

    lines.begin()
    results = step()
    recording = lines.end()
    assert results == ["drained", "waited"]
    assert step() == results
    assert recording is not None
    table = lines_table(recording, [])
    assert [(row[2], row[5]) for row in table["syncs"]] == [("device", 0), ("event", 7)]
    stacks = [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["syncs"]]
    inner = [next(frame for frame in stack if frame[2] == "step")[1] - step.__code__.co_firstlineno for stack in stacks]
    assert inner == [2, 3]
    assert not [frame for stack in stacks for frame in stack if frame[0] == waits_by_name.__file__]
    assert (table["source"], table["warned"]) == ("warnings", [])
