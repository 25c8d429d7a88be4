"""gpytorch: checks of an exact GP, equal inputs of a kernel, flags of a variational strategy, Cholesky factors."""

from __future__ import annotations

import pytest

from tests.frameworks.conftest import Spares

torch = pytest.importorskip("torch")
pytest.importorskip("gpytorch")
pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

EXACT = """
import torch
import gpytorch
from gpytorch.kernels.kernel import sq_dist

class SameInputs(gpytorch.kernels.RBFKernel):
    def covar_dist(self, x1, x2, diag=False, square_dist=False, **others):
        return super().covar_dist(x1, x2, diag=True, square_dist=square_dist, **others) if diag else sq_dist(x1, x2)

class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()
    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

x = torch.linspace(0, 1, 64, device="cuda")[:, None]
y = torch.sin(6 * x[:, 0])
likelihood = gpytorch.likelihoods.GaussianLikelihood().to("cuda")
model = Model(x, y, likelihood).to("cuda").train()
objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
def step():
    prior = model(x)  # prior
    (-objective(prior, y)).backward()  # objective
"""

VARIATIONAL = """
import torch
import gpytorch
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

class Model(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        super().__init__(VariationalStrategy(self, points, CholeskyVariationalDistribution(len(points))))
        self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.RBFKernel()
    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

x = torch.linspace(0, 1, 64, device="cuda")[:, None]
model = Model(torch.linspace(0, 1, 8)[:, None]).to("cuda").train()
strategy = model.variational_strategy
def step():
    model(x).mean.sum().backward()  # here
"""


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        ("model(*model.train_inputs)", "model(*model.train_inputs)"),
        ("model(x)", "model(*model.train_inputs)"),
        ("with gpytorch.settings.debug(False): prior = model(other)", "gpytorch.settings.debug(False)"),
    ],
)
def test_an_exact_gp_compares_its_inputs_unless_they_are_its_own(spares: Spares, call: str, fix: str) -> None:
    """Torch reads nothing to compare a tensor with itself; in debug mode, the default, it reads of another one."""
    program = EXACT.replace("prior = model(x)  # prior", "prior = model(other)  # here")
    program = program.replace("def step():", "other = x.clone()\ndef step():")
    switch = ("prior = model(other)", call if call.startswith("with") else f"prior = {call}")
    spares(program, switch, rule="gpytorch", title="on its training inputs", fix=fix)


def test_a_kernel_of_your_own_need_not_ask_whether_inputs_are_equal(spares: Spares) -> None:
    """It takes the distances as they are."""
    switch = ("ConstantMean(), gpytorch.kernels.RBFKernel()", "ConstantMean(), SameInputs()")
    program = EXACT.replace("# objective", "# here")
    fix = "gpytorch.kernels.kernel.sq_dist(x1, x2)"
    spares(program, switch, rule="gpytorch", title="whether its two inputs are equal", fix=fix)


def test_a_factor_is_not_checked_while_tracing(spares: Spares) -> None:
    """And gets no jitter. The flag is linear_operator's, gpytorch's of the same name is another."""
    switch = ("    (-objective", "    with linear_operator.settings.trace_mode(): (-objective")
    program = EXACT.replace("# objective", "# here").replace("import gpytorch\n", "import gpytorch, linear_operator\n")
    fix = "linear_operator.settings.trace_mode()"
    spares(program, switch, rule="gpytorch", title="Cholesky factor is checked", fix=fix)


def test_flags_on_the_host_are_not_read_from_the_device(spares: Spares) -> None:
    """A variational strategy's are buffers, and move with the model."""
    switch = (
        "def step():",
        "for flag in ('updated_strategy', 'variational_params_initialized'):\n"
        "    setattr(strategy, flag, getattr(strategy, flag).cpu())\ndef step():",
    )
    fix = "setattr(strategy, flag, getattr(strategy, flag).cpu())"
    spares(VARIATIONAL, switch, rule="gpytorch", title="reads its own flags", fix=fix)
