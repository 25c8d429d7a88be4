"""Gives an aggregating metric of torchmetrics the tensor instead of its number: `mean.update(loss.item())`.

The metric lies on the device, to which it copies the number again. The tensor has no dimensions; its dtype becomes the
metric's, as the number's does. A metric that replaces NaN by a number would write to the tensor, and is left.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import makers
from syncscan.fixing.edits import Draft, Render
from syncscan.fixing.flow.number_reads import callable_source, sites
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "metric-numbers"
TITLE = "A number is read, and copied back for a metric"
RULES = ("item", "torchmetrics")
SAFETY = Safety.SAFE
BEFORE = "mean.update(loss.item())"
AFTER = "mean.update(loss.detach())"
FEWEST = 3
SETTING = "metric.update(loss.detach())"
"""As the rule's advice names it."""
_AGGREGATES = {f"torchmetrics.aggregation.{name}Metric" for name in ("Mean", "Sum", "Max", "Min")}


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of metrics that get a number which was read from the device."""
    for site in sites(file):
        call = file.parents[site.node]
        if not isinstance(call, ast.Call) or site.equal is not None or call.args[:1] != [site.node]:
            continue
        if site.count < FEWEST or site.tensor.dims or file.waits_for(call, SETTING) < FEWEST:
            continue
        if _takes_tensor(file, call):
            yield _proposal(file, call, site.node, site.of)


def _takes_tensor(file: File, call: ast.Call) -> bool:
    """Return whether a call updates a metric that neither writes to what it is given nor keeps it."""
    function = call.func
    updates = isinstance(function, ast.Attribute) and function.attr == "update"
    used = function.value if isinstance(function, ast.Attribute) and updates else function
    if not isinstance(used, ast.Name | ast.Attribute):
        return False
    origin = makers.made(file, used)
    types = file.types(used) or (file.types(origin) if origin is not None else set())
    maker = makers.maker(origin)
    plain = maker is not None and not maker.args and makers.takes(maker, "nan_strategy")
    return bool(types) and plain and types <= _AGGREGATES


def _proposal(file: File, call: ast.Call, read: ast.expr, of: ast.expr) -> Proposal:
    draft = Draft(file.text)

    def source(render: Render) -> str:
        return f"{callable_source(render(of))}.detach()"

    draft.replace(read, source)
    return Proposal(
        node=call,
        draft=draft,
        rule="item",
        rewrite=ID,
        change="give the metric the tensor",
        waits=file.seen(read).waits + file.waits_for(call, SETTING),
        setting=SETTING,
    )
