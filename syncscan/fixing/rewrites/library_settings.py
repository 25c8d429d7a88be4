"""Turns off what a library does in every step: a check of a metric's inputs or of a loss, a read for a hidden bar.

The object whose call waits is made once in the file, by a call that doesn't give the setting; a function of
torchmetrics takes the setting itself. Without the check an invalid input isn't reported, and a value that is NaN isn't
left out of a mean or of the log. What Lightning logs for the progress bar is changed only if the Trainer draws none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

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
_METRICS, _COLLECTION, _AGGREGATES = (
    "torchmetrics.classification.",
    "torchmetrics.collections.",
    "torchmetrics.aggregation.",
)


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of libraries that wait for what a setting turns off."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).count >= FEWEST:
            yield from _of_metric(file, node)
    yield from _of_trainer(file)
    yield from _of_bar(file)


def _of_metric(file: File, call: ast.Call) -> Iterator[Proposal]:
    """Yield the proposal for a call of a metric, or of a function that computes one."""
    if _is_functional(file, call):
        yield from _proposals(file, call, _CHECK, [call])
        return
    used = _used(file, call)
    if used is None:
        return
    origin = makers.made(file, used)
    types = file.types(used) or (file.types(origin) if origin is not None else set())
    maker = makers.maker(origin)
    if maker is None or not types:
        return
    if all(name.startswith(_METRICS) for name in types):
        yield from _proposals(file, call, _CHECK, [maker])
    elif all(name.startswith(_COLLECTION) for name in types):
        yield from _proposals(file, call, _CHECK, _members(file, maker))
    elif all(name.startswith(_AGGREGATES) for name in types) and not _is_weighted(file, used):
        yield from _proposals(file, call, _NAN, [maker])


def _used(file: File, call: ast.Call) -> ast.expr | None:
    """Return the metric of `metric(x)` and `metric.update(x)`."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in ("update", "forward"):
        return function.value
    return function if isinstance(function, ast.Name | ast.Attribute) else None


def _is_functional(file: File, call: ast.Call) -> bool:
    """Return whether a call is of a function of torchmetrics.functional, by the file's imports."""
    return makers.full_name(file, call.func).startswith("torchmetrics.functional.")


def _members(file: File, maker: ast.Call) -> list[ast.Call]:
    """Return the calls that make the classification metrics of a collection."""
    inside = (n for argument in [*maker.args, *maker.keywords] for n in ast.walk(argument))
    calls = [n for n in inside if isinstance(n, ast.Call)]
    return [n for n in calls if (types := file.types(n)) and all(name.startswith(_METRICS) for name in types)]


def _is_weighted(file: File, used: ast.expr) -> bool:
    """Return whether a metric may be given weights, which it ignores without the check."""
    calls = (n for n in file.nodes if isinstance(n, ast.Call))
    own = [n for n in calls if (of := _used(file, n)) is not None and questions.same_source(file, of, used)]
    return any(len(n.args) != 1 or n.keywords or isinstance(n.args[0], ast.Starred) for n in own)


def _of_trainer(file: File) -> Iterator[Proposal]:
    """Yield the proposals for the filter of transformers' Trainer."""
    maker = makers.only(file, "transformers.training_args")
    for node in file.waiting_for(_FILTER.argument) if maker is not None else ():
        assert maker is not None
        yield from _proposals(file, node, _FILTER, [maker])


def _of_bar(file: File) -> Iterator[Proposal]:
    """Yield the proposals for values that Lightning reads for a bar that isn't drawn."""
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    given = [k for n in calls if n.func.attr in ("log", "log_dict") for k in n.keywords]  # type: ignore[attr-defined]
    logs = [k for k in given if k.arg == "prog_bar" and _is(k.value, True)]
    if not logs or not _draws_no_bar(file):
        return
    for node in file.waiting_for(_BAR.argument):
        draft = Draft(file.text)
        for keyword in logs:
            draft.replace(keyword.value, "False")
        yield _proposal(file, node, _BAR, draft)


def _draws_no_bar(file: File) -> bool:
    """Return whether the file's only Trainer has no bar, and nothing there asks for the bar's values."""
    trainer = makers.only(file, "lightning.pytorch.trainer.", "pytorch_lightning.trainer.")
    hidden = trainer is not None and any(
        k.arg == "enable_progress_bar" and _is(k.value, False) for k in trainer.keywords
    )
    return hidden and not file.attributes("progress_bar_metrics")


def _is(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _proposals(file: File, node: ast.stmt | ast.expr, setting: _Setting, given: list[ast.Call]) -> Iterator[Proposal]:
    """Yield the proposal that gives each of some calls the setting."""
    name = setting.argument.partition("=")[0]
    if not given or not file.waits_for(node, setting.argument):
        return
    draft = Draft(file.text)
    for call in given:
        if not makers.takes(call, name) or not questions.is_path(call.func):
            return
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
