"""torchmetrics: validation, counting, NaN and numbers."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

metric = METRIC.to("cuda")
predicted = torch.randint(0, 8, (1024,), device="cuda")
labels, loss = torch.randint(0, 8, (1024,), device="cuda"), torch.ones((), device="cuda")
def step():
    metric.update(VALUES)  # here
"""


def accuracy(arguments: str) -> str:
    return PROGRAM.replace("METRIC", f"MulticlassAccuracy({arguments})").replace("VALUES", "predicted, labels")


def test_inputs_are_validated_unless_an_argument_says_no(spares: Spares) -> None:
    """`validate_args` is on by default."""
    program = accuracy("num_classes=8, validate_args=True")
    switch = ("validate_args=True", "validate_args=False")
    spares(program, switch, rule="metric-validation", title="to validate its inputs", fix="validate_args=False")


def test_deterministic_algorithms_count_without_a_wait(spares: Spares) -> None:
    """By comparison, and not by bincount."""
    program = accuracy("num_classes=8, validate_args=False")
    switch = ("def step():\n    metric", "def step():\n    torch.use_deterministic_algorithms(True)\n    metric")
    spares(program, switch, rule="torchmetrics", title="bincount", fix="torch.use_deterministic_algorithms(True)")


def test_ignored_samples_can_have_a_class_of_their_own(spares: Spares) -> None:
    """Then none has to be selected."""
    program = accuracy("num_classes=9, average='none', validate_args=False, ignore_index=-1")
    switch = (", ignore_index=-1", "")
    spares(program, switch, rule="torchmetrics", title="what ignore_index leaves", fix="without ignore_index")


def test_a_mean_looks_for_nan_unless_reported_not_to(spares: Spares) -> None:
    """`nan_strategy='disable'`."""
    program = PROGRAM.replace("METRIC", "MeanMetric(nan_strategy='warn')").replace("VALUES", "loss")
    switch = ("'warn'", "'disable'")
    spares(program, switch, rule="torchmetrics", title="whether a value is NaN", fix="nan_strategy='disable'")


def test_a_number_is_copied_and_a_filled_tensor_is_not(spares: Spares) -> None:
    """A metric on the device takes what is there."""
    program = PROGRAM.replace("METRIC", "MeanMetric(nan_strategy='disable')").replace("VALUES", "3.0")
    switch = ("update(3.0)", "update(torch.full((), 3.0, device=metric.device))")
    fix = "torch.full((), value, device=metric.device)"
    spares(program, switch, rule="torchmetrics", title="copies a Python number", fix=fix)
