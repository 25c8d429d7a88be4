"""An op reads a value back only to check its arguments.

## What it finds

`torch.cov` and `corrcoef` (weights), `torch.istft` (window), `torch.normal` with a tensor of deviations,
`multinomial` of old versions, `embedding_renorm_` and other ops that evaluate `equal`, `min` or `any` on the device to
raise or warn; `gaussian_nll_loss`, which checks in Python whether a variance is negative.

## How it shows in the trace

`aten::cov > aten::equal > aten::item`, `aten::istft > aten::equal > aten::item`, `aten::normal > … > aten::item`,
`aten::multinomial > aten::item` (old).

## Example

```python
result = torch.normal(torch.zeros_like(x), x.abs()).shape
```

## Use instead

Not compared: both draw random numbers, from different generator states.

```python
result = (torch.zeros_like(x) + x.abs() * torch.randn_like(x)).shape
```

## Versions

`multinomial` checks on the device since torch 2.x (`aten::_assert_async`).

## References

- https://docs.pytorch.org/docs/stable/generated/torch.cov.html
- aten/src/ATen/native/Correlation.cpp, aten/src/ATen/native/SpectralOps.cpp,
  aten/src/ATen/native/DistributionTemplates.h
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal

ID = "argument-check"
NAME = "An op reads a value back to check its arguments"
CAUSE = Cause.CHECK
WHY = """\
A value is read back from the device only to raise an error or to warn; the result doesn't depend on it.
"""
WHEN_FINE = """\
In tests and tools, or when it runs rarely.

Doing the arithmetic by hand loses the check.
"""

_FIXES = {
    "aten::corrcoef": "Compute it by hand: c = x - x.mean(1, keepdim=True); normalize c and multiply c @ c.T.",
    "aten::cov": "Compute it by hand: c = x - x.mean(1, keepdim=True); c @ c.T / (n - 1). Only a warning is checked.",
    "aten::istft": "Batch the signals into one call; the window is checked once per call.",
    "aten::normal": "mean + std * torch.randn_like(mean): the check that no deviation is negative is lost.",
    "aten::normal_": "mean + std * torch.randn_like(mean): the check that no deviation is negative is lost.",
    "aten::multinomial": "Upgrade torch: newer versions check on the device.",
    "aten::poisson": "Check the rates beforehand, on the host.",
    "aten::embedding_renorm_": "Upgrade torch, or renormalise by hand with torch.where.",
    "aten::_assert_scalar": "Move the check out of the compiled region, or make the size static.",
    "aten::cudnn_is_acceptable": "Make the input contiguous.",
    "aten::_cudnn_init_dropout_state": "Read once, at the first training forward: warm up.",
}


_OF_FUNCTIONS = {
    "gaussian_nll_loss": "Compute it by hand: var = var.clamp(min=eps); 0.5 * (var.log() + (x - target) ** 2 / var). "
    "The check that no variance is negative is lost.",
}
"""Functions of torch.nn.functional that ask in Python, and what to write instead."""


def match(call: Call) -> Match | None:
    """Match ops that check their arguments on the host, or a function of torch's that does."""
    op = call.first(*_FIXES)
    name = op or next((f for f in _OF_FUNCTIONS if call.scalar and call.in_library_function(f)), "")
    if not name:
        return None
    return Match(
        title=f"{name.removeprefix('aten::')} waits to check its arguments",
        fix=_FIXES.get(name) or _OF_FUNCTIONS[name],
        removal=Removal.NOTHING,
    )
