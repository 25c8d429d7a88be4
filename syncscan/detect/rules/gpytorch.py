"""gpytorch compares its inputs and checks its Cholesky factors on the host.

## What it finds

Each evaluation of a stationary kernel, and each exact solve through a Cholesky factor.

## How it shows in the trace

Frames of `gpytorch/kernels/` around `aten::equal`, of `linear_operator/utils/cholesky.py` around `aten::is_nonzero`.

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

Read in gpytorch 1.14 and linear_operator 0.6, seen in traces.

## References

- https://docs.gpytorch.ai/en/stable/settings.html
- gpytorch/kernels/kernel.py (covar_dist), linear_operator/utils/cholesky.py (_psd_safe_cholesky)
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
    # kernel.py, covar_dist: `x1_eq_x2 = torch.equal(x1, x2)`
    LibraryPlace(
        file="gpytorch/kernels",
        functions=("covar_dist", "_covar_dist", "dist", "sq_dist"),
        title="the kernel asks whether its two inputs are equal",
        fix="No setting spares it: one read each evaluation of the kernel. A kernel of your own that overrides "
        "covar_dist can take what you know (in training both are the same). Leave it where the step doesn't gain "
        "by it.",
        removal=Removal.KERNELS,
    ),
    # cholesky.py, _psd_safe_cholesky: `if settings.trace_mode.on() or not torch.any(info): return L`
    LibraryPlace(
        file="linear_operator/utils/cholesky.py",
        title="the Cholesky factor is checked, to add jitter where it fails",
        fix="gpytorch.settings.trace_mode() skips the check, and with it the jitter: only for matrices that are surely "
        "positive definite (add jitter yourself: covar.add_jitter(1e-4)); it changes other things for tracing too. "
        "Else leave it.",
        cause=Cause.CHECK,
    ),
)


def match(call: Call) -> Match | None:
    """A wait in one of the places of the table."""
    return match_at(call, _PLACES)
