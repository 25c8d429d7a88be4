"""Checks of libraries that a setting turns off; torchmetrics isn't among syncscan's dependencies."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import library_settings
from tests.fixing.example import Rewritten

pytest.importorskip("torchmetrics")

REWRITE = library_settings
BEGIN = (
    "import torchmetrics.functional as functional\n"
    "from torchmetrics import MeanMetric, MetricCollection\n"
    "from torchmetrics.classification import MulticlassAccuracy\n"
    "labels = torch.randint(0, 6, (4,), device=device)\n"
    "guesses = torch.randint(0, 6, (4,), device=device)\n"
)
UPDATED = "for step in range(4):\n    accuracy.update(guesses, labels)\n"
CALLED = "for step in range(4):\n    accuracy(guesses, labels)\n"
AVERAGED = "for step in range(4):\n    accuracy.update(x[0, 0])\n"
WEIGHTED = "for step in range(4):\n    accuracy.update(x[0, 0], weight=y[0, 0])\n"
COLLECTED = "accuracy = MetricCollection([MulticlassAccuracy(num_classes=6)]).to(device)\n"
COMPUTED = (
    "accuracy = MeanMetric(nan_strategy='disable').to(device)\nfor step in range(4):\n"
    "    accuracy.update(functional.accuracy(guesses, labels, task='multiclass', num_classes=6))\n"
)
END = "\nresult = str(accuracy.compute())"
FIXED = {
    f"{BEGIN}accuracy = MulticlassAccuracy(num_classes=6).to(device)\n{UPDATED}": (
        f"{BEGIN}accuracy = MulticlassAccuracy(num_classes=6, validate_args=False).to(device)\n{UPDATED}"
    ),
    f"{BEGIN}accuracy = MulticlassAccuracy(6, average='micro').to(device)\n{CALLED}": (
        f"{BEGIN}accuracy = MulticlassAccuracy(6, average='micro', validate_args=False).to(device)\n{CALLED}"
    ),
    f"{BEGIN}{COLLECTED}{UPDATED}": (
        f"{BEGIN}{COLLECTED.replace('num_classes=6', 'num_classes=6, validate_args=False')}{UPDATED}"
    ),
    f"{BEGIN}{COMPUTED}": f"{BEGIN}{COMPUTED.replace('num_classes=6', 'num_classes=6, validate_args=False')}",
    f"{BEGIN}accuracy = MeanMetric().to(device)\n{AVERAGED}": (
        f"{BEGIN}accuracy = MeanMetric(nan_strategy='disable').to(device)\n{AVERAGED}"
    ),
}
KEPT = {
    "without its check it ignores weights": f"{BEGIN}accuracy = MeanMetric().to(device)\n{WEIGHTED}",
    "NaN is given": f"{BEGIN}accuracy = MeanMetric(nan_strategy='ignore').to(device)\n{AVERAGED}",
    "it is given": f"{BEGIN}accuracy = MulticlassAccuracy(6, validate_args=True).to(device)\n{UPDATED}",
    "two may be meant": (
        f"{BEGIN}accuracy = MulticlassAccuracy(5).to(device)\naccuracy = MulticlassAccuracy(6).to(device)\n{UPDATED}"
    ),
    "arguments that aren't written there": (
        f"{BEGIN}given = {{'num_classes': 6}}\naccuracy = MulticlassAccuracy(**given).to(device)\n{UPDATED}"
    ),
}


@pytest.mark.parametrize("body", FIXED)
def test_it_is_rewritten(programs: dict[str, Rewritten], body: str) -> None:
    """It waits less, and gives the same result."""
    program = programs[body]
    assert program.text == FIXED[body] + END
    assert program.waits[1] < program.waits[0]
    assert program.results[0] == program.results[1]


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(programs: dict[str, Rewritten], name: str) -> None:
    """Not a byte changes."""
    assert programs[name].text == KEPT[name] + END
