"""A dry run has no race in right programs that copy without waiting, offload, prefetch, capture and save."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.race_free import PROGRAMS, Run, races_of
from tests.each import each

OF_TORCH = {name: run for name, (library, run) in PROGRAMS.items() if library == "torch"}


@each("run", OF_TORCH.values(), ids=OF_TORCH)
def test_a_right_program_has_no_race(run: Run) -> None:
    """And it does run on the simulated device. Those of other libraries are run by the benchmark."""
    ops, races, _ = races_of(run)
    assert races == []
    assert ops > 20
