"""Match a wait in one of the places of the table."""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.places_in_libraries import LibraryPlace, match_at
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

_PLACES = (
    # 1.15, models/exact_gp.py, __call__: `if settings.debug.on(): if not all(torch.equal(train_input, input) …)`;
    # ATen, cuda/Equal.cpp, cuda_equal: of one storage, offset and strides it returns before it compares
    LibraryPlace(
        file="gpytorch/models/exact_gp.py",
        functions=("__call__",),
        under=("aten::equal",),
        title="an exact GP checks whether its inputs are its training inputs",
        fix="Call model(*model.train_inputs) in training: comparing a tensor with itself reads nothing. Or run "
        "the step under gpytorch.settings.debug(False), which skips this check and others.",
        cause=Cause.CHECK,
    ),
    # 1.15, kernels/kernel.py, covar_dist: `x1_eq_x2 = torch.equal(x1, x2)`
    LibraryPlace(
        file="gpytorch/kernels/kernel.py",
        functions=("covar_dist",),
        under=("aten::equal",),
        title="the kernel checks whether its two inputs are equal",
        fix="No setting avoids this: one read per evaluation of the kernel. In a subclass of the kernel override "
        "covar_dist: for RBFKernel without diag, gpytorch.kernels.kernel.sq_dist(x1, x2) is the same matrix. Leave it "
        "if the step gains nothing from a fix.",
        removal=Removal.KERNELS,
    ),
    # 1.15, kernels/kernel.py, ProductKernel.forward, linear_kernel.py, inducing_point_kernel.py, …: torch.equal(x1, x2)
    LibraryPlace(
        file="gpytorch/kernels",
        under=("aten::equal",),
        title="the kernel checks whether its two inputs are equal",
        fix="No setting avoids this: one read per evaluation of the kernel. Leave it if the step gains nothing from "
        "a fix.",
        removal=Removal.KERNELS,
    ),
    # 1.15, variational/_variational_strategy.py, __call__: `if not self.variational_params_initialized.item()`;
    # variational_strategy.py, __call__: `if not self.updated_strategy.item() and not prior`
    LibraryPlace(
        file="gpytorch/variational",
        functions=("__call__",),
        direction="DtoH",
        title="a variational strategy reads its own flags from the device",
        fix="The flags are buffers and move with the model. After model.cuda(): for flag in ('updated_strategy', "
        "'variational_params_initialized'): setattr(strategy, flag, getattr(strategy, flag).cpu()), for strategy = "
        "model.variational_strategy.",
    ),
    # linear_operator 0.6, utils/cholesky.py, _psd_safe_cholesky: `settings.trace_mode.on() or not torch.any(info)`
    LibraryPlace(
        file="linear_operator/utils/cholesky.py",
        title="the Cholesky factor is checked, to add jitter if it fails",
        fix="linear_operator.settings.trace_mode() around the solve skips the check and the jitter: use it only for "
        "matrices known to be positive definite (add jitter yourself: covar.add_jitter(1e-4)). "
        "gpytorch.settings.trace_mode() is a different flag and doesn't help. Otherwise leave it.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    return match_at(call, _PLACES)
