"""The distance of two sketches is about that of the tensors."""

from __future__ import annotations

import math

import pytest

from syncscan.capture.fingerprint import NUMBERS, sketch

torch = pytest.importorskip("torch")


def distance(one: object, other: object) -> float:
    (a,), (b,) = sketch([one])["numbers"], sketch([other])["numbers"]
    return math.dist(a, b)


def test_a_small_tensor_is_reported_whole() -> None:
    """With its shape and its type's rounding error."""
    assert sketch([torch.tensor([[1.0, 2.0]])]) == {
        "shapes": [[1, 2]], "numbers": [[1.0, 2.0]], "epsilons": [2.0**-23],
    }  # fmt: skip


@pytest.mark.parametrize("elements", [NUMBERS + 1, 10_000, (1 << 20) + 5])
def test_a_large_one_is_reported_in_a_few_numbers(elements: int) -> None:
    """Good to a third, which is nearly four times the standard error; one changed element is told exactly."""
    lots = torch.Generator().manual_seed(1)
    tensor, other = torch.randn(2, elements, generator=lots, dtype=torch.float64)
    assert distance(tensor, other) == pytest.approx(float((tensor - other).norm()), rel=0.35)
    changed = tensor.clone()
    changed[elements // 2] += 0.25
    assert distance(tensor, changed) == pytest.approx(0.25)
    assert len(sketch([tensor])["numbers"][0]) == NUMBERS


@pytest.mark.parametrize("kind", ["bfloat16", "int64", "complex64", "bool"])
def test_every_type_of_number_has_one(kind: str) -> None:
    """Also in a layout that isn't dense."""
    values = torch.ones(100).to(getattr(torch, kind))
    assert distance(values, values) == 0
    assert distance(values, torch.zeros(100).to(values.dtype)) > 1


def test_a_sparse_tensor_is_its_dense_form() -> None:
    """So that two of them can be compared."""
    dense = torch.eye(3)
    assert distance(dense, dense.to_sparse()) == 0
