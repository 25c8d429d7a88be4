"""Checks of libraries that a setting turns off; torchmetrics isn't among syncscan's dependencies."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import library_settings
from tests.fixing.example import Rewritten

pytest.importorskip("torchmetrics")

REWRITE = library_settings
BEGIN = (
    "from torchmetrics.classification import MulticlassAccuracy\n"
    "labels = torch.randint(0, 6, (4,), device=device)\n"
    "guesses = torch.randint(0, 6, (4,), device=device)\n"
)
UPDATED = "for step in range(4):\n    accuracy.update(guesses, labels)\n"
CALLED = "for step in range(4):\n    accuracy(guesses, labels)\n"
END = "\nresult = accuracy.compute().item()"
FIXED = {
    f"{BEGIN}accuracy = MulticlassAccuracy(num_classes=6).to(device)\n{UPDATED}": (
        f"{BEGIN}accuracy = MulticlassAccuracy(num_classes=6, validate_args=False).to(device)\n{UPDATED}"
    ),
    f"{BEGIN}accuracy = MulticlassAccuracy(6, average='micro').to(device)\n{CALLED}": (
        f"{BEGIN}accuracy = MulticlassAccuracy(6, average='micro', validate_args=False).to(device)\n{CALLED}"
    ),
}
KEPT = {
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
