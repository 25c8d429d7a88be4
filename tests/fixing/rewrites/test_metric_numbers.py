"""Aggregating metrics that get numbers of tensors; torchmetrics isn't among syncscan's dependencies."""

from __future__ import annotations

import pytest

from syncscan.fixing.rewrites import metric_numbers
from tests.fixing.example import Rewritten

pytest.importorskip("torchmetrics")

REWRITE = metric_numbers
BEGIN = "from torchmetrics import CatMetric, MeanMetric\nmean = MeanMetric().to(device)\n"
LOOP = "for loss in losses[:4]:\n    mean.update(loss.item())\n"
WEIGHTED = "for loss in losses[:4]:\n    mean.update(loss.item(), weight=3)\n"
CALLED = "for loss in losses[:4]:\n    mean(float(loss * 2))\n"
END = "\nresult = str(mean.compute())"
FIXED = {
    f"{BEGIN}{LOOP}": f"{BEGIN}{LOOP.replace('item', 'detach')}",
    f"{BEGIN}{WEIGHTED}": f"{BEGIN}{WEIGHTED.replace('item', 'detach')}",
    f"{BEGIN}{CALLED}": f"{BEGIN}{CALLED.replace('float(loss * 2)', '(loss * 2).detach()')}",
}
KEPT = {
    "the metric lies on the host": f"{BEGIN.replace('.to(device)', '')}{LOOP}",
    "a NaN would be replaced in the loss": f"{BEGIN.replace('MeanMetric()', 'MeanMetric(nan_strategy=0.0)')}{LOOP}",
    "it keeps what it gets": f"{BEGIN.replace('MeanMetric()', 'CatMetric()')}{LOOP}",
    "one element isn't a number": f"{BEGIN}for loss in losses[:4]:\n    mean.update(loss[None].item())\n",
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
