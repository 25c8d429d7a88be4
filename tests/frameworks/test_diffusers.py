"""diffusers: schedulers that search, and schedulers that look up."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

SEARCH = """
import torch
from diffusers import EulerDiscreteScheduler

scheduler = EulerDiscreteScheduler()
sample = torch.randn(1, 4, 32, 32, device="cuda")
def step():
    scheduler.set_timesteps(4, device="cuda")
    x = sample
    for t in scheduler.timesteps:
        x = scheduler.step(scheduler.scale_model_input(x, t), t, x).prev_sample  # here
"""

LOOKUP = """
import torch
from diffusers import DDIMScheduler

scheduler = DDIMScheduler()
scheduler.set_timesteps(4, device="cuda")
sample, on_device = torch.randn(1, 4, 32, 32, device="cuda"), scheduler.timesteps.to("cuda")
def step():
    x = sample
    for t, of_model in zip(scheduler.timesteps, on_device):
        x = scheduler.step(x * (1 + of_model), t, x).prev_sample  # here
"""


def test_a_scheduler_that_knows_where_it_begins_does_not_search(spares: Spares) -> None:
    """It counts its steps on the host."""
    switch = ("    x = sample", "    scheduler.set_begin_index(0)\n    x = sample")
    fix = "scheduler.set_begin_index(0)"
    spares(SEARCH, switch, rule="diffusers", title="searches for its timestep", fix=fix)


def test_timesteps_on_the_host_are_not_read_back(spares: Spares) -> None:
    """The model is given those on the device."""
    switch = ('set_timesteps(4, device="cuda")', "set_timesteps(4)")
    fix = "scheduler.set_timesteps(n) without a device"
    spares(LOOKUP, switch, rule="diffusers", title="to look its constants up", fix=fix)
