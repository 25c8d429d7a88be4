"""A read-back cuts a compiled function in two.

## What it finds

`.item()`, `bool(t)` or data-dependent shapes inside a function under `torch.compile`.

## Why it stalls

Dynamo stops compiling at the read-back, runs it eagerly and goes on in a second graph: a wait, and two smaller graphs
instead of one.

## How it shows in the trace

A read-back inside a `Torch-Compiled Region` slice but outside of its `## Call CompiledFxGraph …`, with the next region
behind it.

## Example

```python
def step(t):
    scale = t.mean().item()
    return t * scale

result = step(x)  # under torch.compile
```

## Use instead

Not recorded: compiling takes longer than all other examples together.

```python
def step(t):
    return t * t.mean()

result = step(x)  # under torch.compile
```

## When it is fine

`torch._dynamo.config.capture_scalar_outputs = True` keeps `.item()` in one graph, but the wait stays; `torch.where`
and `torch.cond` remove both.

## Versions

Regions are named in traces since about torch 2.1.

## References

- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- torch/_dynamo/config.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.model.finding import Cause, Diagnosis

ID = "graph-break"
NAME = "A graph break reads a value back"
CAUSE = Cause.READBACK

_REGION = "Torch-Compiled Region"
_GRAPH = "## Call CompiledFxGraph"


def match(call: Call) -> Diagnosis | None:
    """A read-back that runs eagerly inside a compiled region, or between two different ones."""
    if call.top not in ("aten::item", "aten::is_nonzero", "aten::nonzero", "aten::to") or call.direction == "HtoD":
        return None
    inside = any(op.startswith(_REGION) for op in call.ops) and not any(op.startswith(_GRAPH) for op in call.ops)
    before = next((n for n in call.before[:-9:-1] if n.startswith(_REGION)), "")
    after = next((n for n in call.after[:8] if n.startswith(_REGION)), "")
    if not (inside or (before and after and before != after)):
        return None
    return Diagnosis(
        ID,
        NAME,
        {"aten::is_nonzero": Cause.CTRL, "aten::nonzero": Cause.SHAPE}.get(call.top, CAUSE),
        title="a read-back breaks the compiled graph in two",
        why="Dynamo can't compile the read-back: it runs eagerly, waits, and a second graph follows.",
        fix="Keep the value a tensor (torch.where, torch.cond). capture_scalar_outputs=True mends the break, not the "
        "wait.",
        when_fine="Outside of the hot function.",
    )
