"""Turns off what a library does in every step: a check of a metric's inputs or of a loss, a read for a hidden bar.

The object whose call waits is made once in the file, by a call that doesn't give the setting; a function of
torchmetrics takes the setting itself. Without the check an invalid input isn't reported, and a value that is NaN isn't
left out of a mean or of the log. What Lightning logs for the progress bar is changed only if the Trainer draws none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from syncscan.facts.code_pattern import matched
from syncscan.fixing import makers, questions
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "library-settings"
TITLE = "A library checks or reads values in every step"
RULES = ("metric-validation", "torchmetrics", "transformers", "lightning")
SAFETY = Safety.UNSAFE
BEFORE = "accuracy = MulticlassAccuracy(num_classes=8)\nfor scores in batches:\n    accuracy.update(scores, labels)"
AFTER = (
    "accuracy = MulticlassAccuracy(num_classes=8, validate_args=False)\n"
    "for scores in batches:\n    accuracy.update(scores, labels)"
)
FEWEST = 3


class _Setting(msgspec.Struct, frozen=True):
    """An argument that turns something off."""

    rule: str
    argument: str
    """As it is written, and as the rule's advice names it."""
    change: str
    why: str


_CHECK = _Setting(
    rule="metric-validation",
    argument="validate_args=False",
    change="turn off the checks of the metric's inputs with validate_args=False",
    why="an invalid input isn't reported",
)
_NAN = _Setting(
    rule="torchmetrics",
    argument="nan_strategy='disable'",
    change="turn off the metric's check for NaN with nan_strategy='disable'",
    why="a NaN isn't left out any more",
)
_FILTER = _Setting(
    rule="transformers",
    argument="logging_nan_inf_filter=False",
    change="turn off the filter with logging_nan_inf_filter=False",
    why="a loss that is NaN or infinite appears in the log",
)
_BAR = _Setting(
    rule="lightning",
    argument="prog_bar=False",
    change="log with prog_bar=False, as the Trainer draws no bar",
    why="trainer.progress_bar_metrics doesn't have the value any more",
)
_METRICS = "torchmetrics.classification."
_LOG = "$module.log(..., prog_bar=$shown) | $module.log_dict(..., prog_bar=$shown)"


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).count >= FEWEST:
            yield from _of_metric(file, node)
    if (trainer := makers.only(file, "transformers.training_args")) is not None:
        for statement in file.waiting_for(_FILTER.argument):
            yield from _given(file, statement, _FILTER, [trainer])
    yield from _of_bar(file)


def _of_metric(file: File, call: ast.Call) -> Iterator[Proposal]:
    """Yield the proposal for a call of a metric, or of a function that computes one."""
    if makers.full_name(file, call.func).startswith("torchmetrics.functional."):
        yield from _given(file, call, _CHECK, [call])
        return
    used = _metric(call)
    origin = makers.made(file, used)
    types = file.types(used) or (file.types(origin) if origin is not None else set())
    maker = makers.maker(origin)
    if maker is None or not types:
        return
    if all(name.startswith(_METRICS) for name in types):
        yield from _given(file, call, _CHECK, [maker])
    elif all(name.startswith("torchmetrics.collections.") for name in types):
        yield from _given(file, call, _CHECK, _members(file, maker))
    elif all(name.startswith("torchmetrics.aggregation.") for name in types) and not _is_weighted(file, used):
        yield from _given(file, call, _NAN, [maker])


def _metric(call: ast.Call) -> ast.expr:
    """Return the metric of `metric(x)` and `metric.update(x)`."""
    method = matched("$metric.update | $metric.forward", call.func)
    return method.metric if method else call.func


def _members(file: File, maker: ast.Call) -> list[ast.Call]:
    """Return the calls that make the classification metrics of a collection."""
    inside = [n for argument in [*maker.args, *maker.keywords] for n in ast.walk(argument)]
    calls = [n for n in inside if isinstance(n, ast.Call)]
    return [n for n in calls if (types := file.types(n)) and all(name.startswith(_METRICS) for name in types)]


def _is_weighted(file: File, used: ast.expr) -> bool:
    """Return whether a metric may be given weights, which it ignores without the check."""
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and questions.same_source(file, _metric(n), used)]
    return not all(matched("$metric($value)", n) for n in calls)


def _of_bar(file: File) -> Iterator[Proposal]:
    """Yield the proposals for values that Lightning reads for a bar that isn't drawn."""
    trainer = makers.only(file, "lightning.pytorch.trainer.", "pytorch_lightning.trainer.")
    hidden = matched("$trainer(..., enable_progress_bar=False)", trainer)
    if not hidden or file.attributes("progress_bar_metrics"):
        return
    calls = (matched(_LOG, node) for node in file.nodes)
    logs = [call.shown for call in calls if call and matched("True", call.shown)]
    for node in file.waiting_for(_BAR.argument) if logs else ():
        draft = Draft(file.text)
        for shown in logs:
            draft.replace(shown, "False")
        yield _proposal(file, node, _BAR, draft)


def _given(file: File, node: ast.stmt | ast.expr, setting: _Setting, calls: list[ast.Call]) -> Iterator[Proposal]:
    """Yield the proposal that gives each of some calls the setting."""
    name = setting.argument.partition("=")[0]
    if not calls or not file.waits_for(node, setting.argument):
        return
    if all(makers.takes(call, name) and questions.is_path(call.func) for call in calls):
        draft = Draft(file.text)
        for call in calls:
            draft.replace(call, with_argument(file.text, call, setting.argument))
        yield _proposal(file, node, setting, draft)


def _proposal(file: File, node: ast.AST, setting: _Setting, draft: Draft) -> Proposal:
    return Proposal(
        node=node,
        draft=draft,
        rule=setting.rule,
        change=setting.change,
        waits=file.waits_for(node, setting.argument),
        why=setting.why,
        setting=setting.argument,
    )
