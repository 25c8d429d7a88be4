"""Names of torch that lead past a note, and back."""

from __future__ import annotations

import pytest

from syncscan.capture.entry_points import replaced

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
