"""A read-back cuts a compiled function in two.

## What it finds

`.item()`, `bool(t)` or data-dependent shapes inside a function under `torch.compile`.

## How it shows in the trace

A read-back inside a `Torch-Compiled Region` slice but outside of its `## Call CompiledFxGraph …`, with the next region
after it; or, with stacks, below a frame of `torch/_dynamo/eval_frame.py` and in no region: dynamo left the function to
eager mode.

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

## Versions

Regions are named in traces since about torch 2.1.

## References

- https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
- torch/_dynamo/config.py
"""

from __future__ import annotations

from syncscan.detect.call import Call
from syncscan.detect.rule import Match
from syncscan.model.finding import Cause, Removal
from syncscan.model.slice_names import is_compiled_graph, is_compiled_region

ID = "graph-break"
NAME = "A graph break reads a value back"
CAUSE = Cause.READBACK
WHY = """\
Dynamo stops compiling at the read-back, runs it eagerly and continues in a second graph: a wait, and two smaller graphs
    instead of one.
"""
WHEN_FINE = """\
Outside of the hot function.

`torch._dynamo.config.capture_scalar_outputs = True` keeps `.item()` in one graph, but the wait remains; `torch.where`
and `torch.cond` remove both.
"""

_WRAPPER = "torch/_dynamo/eval_frame.py"
_READS = {
    "aten::item": CAUSE,
    "aten::to": CAUSE,
    "aten::is_nonzero": Cause.CTRL,
    "aten::nonzero": Cause.SHAPE,
}
"""Read-backs that Dynamo leaves to eager mode, and the cause of each."""


def match(call: Call) -> Match | None:
    """Match a read-back that runs eagerly in a compiled region, between two, or in a function left to eager."""
    if call.top not in _READS or call.facts.direction == "HtoD":
        return None
    if not (_inside(call) or _between(call) or _left_to_eager(call)):
        return None
    broken = _inside(call) or _between(call)
    return Match(
        title=f"a read-back {'breaks the compiled graph in two' if broken else 'keeps a function from being compiled'}",
        fix="Keep the value a tensor (torch.where, torch.cond). capture_scalar_outputs=True fixes the break, not "
        "the wait.",
        cause=_READS[call.top],
        removal=Removal.NOTHING,
    )


def _inside(call: Call) -> bool:
    """Return whether it runs eagerly inside a region."""
    return any(map(is_compiled_region, call.ops)) and not any(map(is_compiled_graph, call.ops))


def _left_to_eager(call: Call) -> bool:
    """Return whether compiled code calls it outside of a region: a break in a loop leaves the whole function eager.

    Dynamo's wrapper stands in the stack above the function: `compile_wrapper` of torch/_dynamo/eval_frame.py. What
    `torch.compiler.disable` wraps stands below `_fn` there, and was meant to run eagerly; so stood both before 2.9.
    """
    wrappers = [frame.function for frame in call.place.python_frames if frame.file.endswith(_WRAPPER)]
    left = bool(wrappers) and wrappers[-1] == "compile_wrapper"
    return left and not any(map(is_compiled_region, call.ops)) and not call.backward


def _between(call: Call) -> bool:
    """Return whether one region ran before it and another one runs after it."""
    before = call.nearest_before(is_compiled_region, 8)
    return bool(before) and call.nearest_after(is_compiled_region, 8) not in ("", before)
