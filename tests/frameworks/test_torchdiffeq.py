"""torchdiffeq: steps of known number, and a first step that is given."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("torchdiffeq")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
from torchdiffeq import odeint

layer = torch.nn.Linear(16, 16).to("cuda")
x, times = torch.randn(8, 16, device="cuda"), torch.linspace(0, 1, 2, device="cuda")
def step():
    odeint(lambda t, y: torch.tanh(layer(y)), x, times, method="dopri5")[-1].sum().backward()  # here
"""


def test_fixed_steps_read_neither_error_nor_time(spares: Spares) -> None:
    """`method='rk4'` with a size."""
    switch = ('method="dopri5"', "method='rk4', options={'step_size': 0.25}")
    fix = "method='rk4' with options={'step_size': h}"
    spares(PROGRAM, switch, rule="torchdiffeq", title="error and the time of its step", fix=fix)


def test_fixed_steps_are_not_looked_at_for_what_is_not_finite(spares: Spares) -> None:
    """The assertion is the adaptive solver's."""
    switch = ('method="dopri5"', "method='rk4', options={'step_size': 0.25}")
    spares(PROGRAM, switch, rule="torchdiffeq", title="whether its state is finite", fix="method='rk4'")


def test_a_first_step_that_is_given_is_not_searched_for(spares: Spares) -> None:
    """`options={'first_step': h}`."""
    switch = ('method="dopri5"', "method='dopri5', options={'first_step': 0.1}")
    spares(PROGRAM, switch, rule="torchdiffeq", title="looks for its first step", fix="options={'first_step': h}")
