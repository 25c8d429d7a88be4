"""A fingerprint records what a program computes in its first steps, and changes nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncscan.capture.fingerprint import Fingerprinting, round_off, tensors_in

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
