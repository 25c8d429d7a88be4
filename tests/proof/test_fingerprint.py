"""A fingerprint records what a program computes in its first steps, and changes nothing of it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from syncscan.proof.fingerprint import NUMBERS, Fingerprinting, round_off, sketch, tensors_in

torch = pytest.importorskip("torch")


@pytest.fixture
def taken() -> Iterator[Fingerprinting]:
    built = Fingerprinting(rounded=False)
    yield built
    built.leave()


def train(weight: object, optimizer: object) -> object:
    loss = (weight * 3).sum()  # type: ignore[operator]
    optimizer.zero_grad()  # type: ignore[attr-defined]
    loss.backward()
    optimizer.step()  # type: ignore[attr-defined]
    return loss


def test_losses_and_parameters_are_kept(taken: Fingerprinting) -> None:
    """The fingerprint has the loss of each step's backward, and the parameters before the first step and after the
    last.
    """
    weight = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)
    for _ in range(2):
        train(weight, optimizer)
        taken.step()
    result = taken.result()
    assert [step["numbers"] for step in result["losses"]] == [[[3.0]], [[-1.5]]]
    assert (result["begin"]["numbers"], result["end"]["numbers"]) == ([[1.0]], [[-2.0]])
    assert result["source"] == "losses"


def test_what_a_function_returns_counts_as_well(taken: Fingerprinting) -> None:
    """Tensors and numbers, in whatever they are."""
    taken.step({"loss": 2, "more": [torch.ones(2), None, "text"]})
    assert taken.result()["losses"][0]["numbers"] == [[2.0], [1.0, 1.0]]


def test_without_a_loss_the_outermost_modules_outputs_are_compared(taken: Fingerprinting) -> None:
    """As of an inference, and not those of the modules inside."""
    net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten(0))
    net(torch.ones(2))
    taken.step()
    result = taken.result()
    assert (result["source"], result["losses"][0]["numbers"]) == ("outputs", [[1.0, 1.0]])


def test_nothing_of_torch_is_changed_afterwards() -> None:
    """Its names and hooks are its own again."""
    before = torch.autograd.backward, torch.optim.Optimizer.__init__
    built = Fingerprinting(rounded=True)
    assert (torch.autograd.backward, torch.optim.Optimizer.__init__) != before
    built.leave()
    assert (torch.autograd.backward, torch.optim.Optimizer.__init__) == before
    assert not torch.nn.modules.module._global_forward_hooks


def test_a_rounding_error_is_one_of_the_parameter_s_type() -> None:
    """Up or down; the program's random numbers go on as they would have."""
    built = Fingerprinting(rounded=True)
    weight = torch.ones(1000, requires_grad=True)
    torch.manual_seed(3)
    torch.optim.SGD([weight])
    built.leave()
    errors = {round(float(e) * 2**23) for e in (weight.detach() - 1).unique()}
    assert errors == {-1, 1}
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))
    counts = torch.ones(2, dtype=torch.int64)
    round_off([counts])
    assert counts.tolist() == [1, 1]


def test_text_holds_no_tensor() -> None:
    """Nor does nothing."""
    assert tensors_in(None) == tensors_in("text") == []


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


def test_rounding_errors_are_as_large_in_a_sketch_as_they_are() -> None:
    """Their signs have nothing to do with those of the sketch, which would add all of them up."""
    weights = torch.rand(1 << 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 1
    rounded = weights.float()
    round_off([rounded])
    pair = [sketch([tensor])["numbers"][0] for tensor in (weights.float(), rounded)]
    apart = (rounded.double() - weights.float().double()).norm().item()
    assert math.dist(*pair) == pytest.approx(apart, rel=0.5)
