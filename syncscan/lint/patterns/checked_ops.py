"""`torch.linalg.inv`, `clip_grad_norm_(error_if_nonfinite=True)`, `Normal(…)`: a value is read only for a check."""

from __future__ import annotations

import ast

from syncscan.lint.imported_names import argument, constant, is_true, splats
from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind

RULES = ("linalg-check", "clip-grad", "distribution-args", "argument-check", "ctc-loss")
LOOKS_AT = (ast.Call,)
_LINALG = {
    "inv": "inv_ex",
    "solve": "solve_ex",
    "cholesky": "cholesky_ex",
    "lu_factor": "lu_factor_ex",
    "ldl_factor": "ldl_factor_ex",
}
_WITHOUT = ("eigh", "svd", "pinv", "matrix_rank", "lstsq", "eig", "svdvals", "eigvalsh", "eigvals")
_OLD = {"inverse": "inv_ex", "cholesky": "cholesky_ex", "svd": "", "pinverse": ""}
_DISTRIBUTIONS = frozenset(
    "Normal Bernoulli Categorical Beta Dirichlet Gamma Exponential Uniform LogNormal Laplace Poisson Binomial "
    "Multinomial MultivariateNormal OneHotCategorical Cauchy StudentT Gumbel".split()
)


def find(site: LintSite) -> Hit | None:
    """Return a call that checks on the host what the device computed."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    name = site.torch(node)
    if name.rpartition(".")[2] in ("clip_grad_norm_", "get_total_norm") and is_true(
        argument(node, "error_if_nonfinite")
    ):
        fix = "Leave error_if_nonfinite at False and look at the norm every N steps."
        return Hit("clip-grad", "clipping waits to check whether the norm is finite", fix)
    if name in ("cov", "corrcoef", "istft") and site.waits_for(site.value(argument(node, "input", 0))):
        return Hit("argument-check", f"{name} reads a value back to check its arguments", "Compute it by hand.")
    lengths = [site.value(argument(node, n, at)) for n, at in (("input_lengths", 2), ("target_lengths", 3))]
    if name == "nn.functional.ctc_loss" and site.waits_for(*(v for v in lengths if v.kind is not ValueKind.CPU)):
        return Hit("ctc-loss", "ctc_loss copies its lengths to the host", "Pass lists or CPU tensors.")
    return _linalg(site, node, name) or _distribution(site, node, name)


def _linalg(site: LintSite, node: ast.Call, name: str) -> Hit | None:
    op = name.removeprefix("linalg.")
    checked = name.startswith("linalg.") and (op in _LINALG or op in _WITHOUT)
    if not checked and name not in _OLD:
        return None
    value = site.value(argument(node, "input", 0) or argument(node, "A", 0))
    if value.kind is ValueKind.UNKNOWN and site.place:
        value = site.value(node)
    if splats(node) or not site.waits_for(value):
        return None
    spared = _LINALG.get(op) if checked else _OLD[name]
    fix = (
        f"torch.linalg.{spared}(…) doesn't check; it also returns info."
        if spared
        else "Call it less often, or batch the calls."
    )
    return Hit("linalg-check", f"linalg.{op} waits for its error flag", fix)


def _distribution(site: LintSite, node: ast.Call, name: str) -> Hit | None:
    if not name.startswith("distributions.") or name.rpartition(".")[2] not in _DISTRIBUTIONS or splats(node):
        return None
    values = [site.value(a) for a in (*node.args, *(k.value for k in node.keywords))]
    if constant(argument(node, "validate_args")) is not None or not site.waits_for(*values):
        return None
    return Hit(
        "distribution-args",
        "a distribution waits to validate its arguments",
        "Pass validate_args=False once the model works, or Distribution.set_default_validate_args(False).",
    )
