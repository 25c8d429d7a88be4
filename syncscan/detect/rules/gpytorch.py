"""gpytorch compares its inputs and checks its Cholesky factors on the host.

## What it finds

Each training step of an exact GP whose inputs are other tensors than those it holds, each evaluation of a stationary
kernel, each call of a variational strategy and each exact solve through a Cholesky factor.

## How it shows in the trace

Frames of `gpytorch/kernels/` and `gpytorch/models/` around `aten::equal`, of `linear_operator/utils/cholesky.py` around
`aten::is_nonzero`, of `gpytorch/variational/` around `aten::item`.

## Example

```python
factor, info = torch.linalg.cholesky_ex(x @ x.T + 64 * torch.eye(64, device=device))
if torch.any(info):
    raise RuntimeError("not positive definite")
result = factor
```

## Use instead

Not run: the code is gpytorch's.

```python
factor, info = torch.linalg.cholesky_ex(x @ x.T + 64 * torch.eye(64, device=device))
result = factor  # look at info every some steps
```

## Versions

Measured in gpytorch 1.15: what kernels and variational strategies ask. Read there and in linear_operator 0.6: the
training inputs' check, which an H200 with torch 2.11 didn't wait for where they were the very tensors, and that
`linear_operator.settings.trace_mode` spares the factor's check; `gpytorch.settings.trace_mode` was measured not to.

## References

- https://docs.gpytorch.ai/en/stable/settings.html
- gpytorch/kernels/kernel.py (covar_dist), gpytorch/models/exact_gp.py, gpytorch/variational/_variational_strategy.py
- linear_operator/utils/cholesky.py (_psd_safe_cholesky)
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "gpytorch"
NAME = "gpytorch asks before it computes"
CAUSE = Cause.CTRL
WHY = """\
Whether two inputs are equal, or a factor exists, is asked on the host, to choose a shorter way or to add jitter.
"""
WHEN_FINE = """\
While kernel matrices are large: two reads are small beside a solve.

Both steer what is computed next, and can't simply be left out.
"""

_PLACES = (
    # 1.15, models/exact_gp.py, __call__: `if settings.debug.on(): if not all(torch.equal(train_input, input) …)`;
    # ATen, cuda/Equal.cpp, cuda_equal: of one storage, offset and strides it returns before it compares
    LibraryPlace(
        file="gpytorch/models/exact_gp.py",
        functions=("__call__",),
        under=("aten::equal",),
        title="an exact GP asks whether it trains on its training inputs",
        fix="model(*model.train_inputs) in training: of a tensor and itself nothing is read. Or with "
        "gpytorch.settings.debug(False): around the step, which leaves this check and others out.",
        cause=Cause.CHECK,
    ),
    # 1.15, kernels/kernel.py, covar_dist: `x1_eq_x2 = torch.equal(x1, x2)`
    LibraryPlace(
        file="gpytorch/kernels/kernel.py",
        functions=("covar_dist",),
        under=("aten::equal",),
        title="the kernel asks whether its two inputs are equal",
        fix="No setting spares it: one read each evaluation of the kernel. In a subclass of the kernel override "
        "covar_dist: for RBFKernel without diag, gpytorch.kernels.kernel.sq_dist(x1, x2) is the same matrix. Leave it "
        "where the step doesn't gain by it.",
        removal=Removal.KERNELS,
    ),
    # 1.15, kernels/kernel.py, ProductKernel.forward, linear_kernel.py, inducing_point_kernel.py, …: torch.equal(x1, x2)
    LibraryPlace(
        file="gpytorch/kernels",
        under=("aten::equal",),
        title="the kernel asks whether its two inputs are equal",
        fix="No setting spares it: one read each evaluation of the kernel. Leave it where the step doesn't gain by it.",
        removal=Removal.KERNELS,
    ),
    # 1.15, variational/_variational_strategy.py, __call__: `if not self.variational_params_initialized.item()`;
    # variational_strategy.py, __call__: `if not self.updated_strategy.item() and not prior`
    LibraryPlace(
        file="gpytorch/variational",
        functions=("__call__",),
        direction="DtoH",
        title="a variational strategy reads its own flags from the device",
        fix="They are buffers, and move with the model. After model.cuda(): for flag in ('updated_strategy', "
        "'variational_params_initialized'): setattr(strategy, flag, getattr(strategy, flag).cpu()), for strategy = "
        "model.variational_strategy.",
    ),
    # linear_operator 0.6, utils/cholesky.py, _psd_safe_cholesky: `settings.trace_mode.on() or not torch.any(info)`
    LibraryPlace(
        file="linear_operator/utils/cholesky.py",
        title="the Cholesky factor is checked, to add jitter where it fails",
        fix="linear_operator.settings.trace_mode() around the solve skips the check, and with it the jitter: only for "
        "matrices that are surely positive definite (add jitter yourself: covar.add_jitter(1e-4)). "
        "gpytorch.settings.trace_mode() is another flag, and doesn't. Else leave it.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    """Match a wait in one of the places of the table."""
    return match_at(call, _PLACES)
