"""Pyro: the loss of each site, and validation."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("pyro")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

PROGRAM = """
import torch
import pyro
import pyro.distributions as dist
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoNormal

torch.set_default_device("cuda")
data = torch.randn(64) + 3

def model(data):
    level = pyro.sample("level", dist.Normal(torch.zeros(()), torch.ones(())))
    with pyro.plate("data", len(data)):
        pyro.sample("seen", dist.Normal(level, torch.ones(())), obs=data)

guide = AutoNormal(model)
guide(data)

def loss(model, guide, data):
    guide_trace = pyro.poutine.trace(guide).get_trace(data)
    model_trace = pyro.poutine.trace(pyro.poutine.replay(model, trace=guide_trace)).get_trace(data)
    return guide_trace.log_prob_sum() - model_trace.log_prob_sum()

svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), Trace_ELBO())
optimizer = torch.optim.Adam(guide.parameters(), lr=0.1)
def step():
    svi.step(data)  # here
"""


def test_a_loss_of_your_own_is_read_by_nobody(spares: Spares) -> None:
    """With a torch optimizer: `svi.step` reads the loss of each site."""
    spares(
        PROGRAM,
        ("    svi.step(data)", "    optimizer.zero_grad(); loss(model, guide, data).backward(); optimizer.step()"),
        rule="pyro",
        title="once for each sample site",
        fix="guide_trace.log_prob_sum() - model_trace.log_prob_sum()",
    )


def test_distributions_are_validated_until_it_is_turned_off(spares: Spares) -> None:
    """`pyro.enable_validation(False)`, once for all."""
    switch = ("import pyro.distributions", "pyro.enable_validation(False)\nimport pyro.distributions")
    fix = "pyro.enable_validation(False)"
    spares(PROGRAM, switch, rule="pyro", title="to validate its arguments", fix=fix)


def test_log_probabilities_are_looked_at_until_it_is_turned_off(spares: Spares) -> None:
    """Each site's, for NaN."""
    program = PROGRAM.replace("svi.step(data)  # here", "loss(model, guide, data).backward()")
    program = program.replace("- model_trace.log_prob_sum()", "- model_trace.log_prob_sum()  # here")
    switch = ("import pyro.distributions", "pyro.enable_validation(False)\nimport pyro.distributions")
    spares(program, switch, rule="pyro", title="whether a log probability", fix="pyro.enable_validation(False)")
