"""Turns off a check that a library makes in every step: of a metric's inputs, of a Trainer's loss.

The object whose call waits is made once in the file, by a call that doesn't give the setting. Without the check an
invalid input isn't reported (torchmetrics), and a loss that is NaN or infinite appears in the log instead of being
left out (transformers).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft, with_argument
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "library-settings"
TITLE = "A library checks its values in every step"
RULES = ("metric-validation", "transformers")
SAFETY = Safety.UNSAFE
BEFORE = "accuracy = MulticlassAccuracy(num_classes=8)\nfor scores in batches:\n    accuracy.update(scores, labels)"
AFTER = (
    "accuracy = MulticlassAccuracy(num_classes=8, validate_args=False)\n"
    "for scores in batches:\n    accuracy.update(scores, labels)"
)
FEWEST = 3


class _Setting(msgspec.Struct, frozen=True):
    """An argument that turns off a check."""

    library: str
    """Beginning of the types whose calls wait."""
    argument: str
    rule: str
    change: str
    why: str
    made_by: str = ""
    """Name of the class that takes the argument; empty for the one that waits."""


_SETTINGS = (
    _Setting(
        library="torchmetrics.classification.",
        argument="validate_args=False",
        rule="metric-validation",
        change="turn off the checks of the metric's inputs with validate_args=False",
        why="an invalid input isn't reported",
    ),
    _Setting(
        library="transformers.trainer.",
        argument="logging_nan_inf_filter=False",
        rule="transformers",
        change="turn off the filter with logging_nan_inf_filter=False",
        why="a loss that is NaN or infinite appears in the log",
        made_by="TrainingArguments",
    ),
)


def find(file: File) -> Iterator[Proposal | Left]:
    """Yield the calls of library objects that wait to check values."""
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.own_waits(node) >= FEWEST:
            yield from _of(file, node)


def _of(file: File, call: ast.Call) -> Iterator[Proposal]:
    candidates = [call.func, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    for used in candidates:
        origin = _made(file, used)
        types = file.types(used) or (file.types(origin) if origin is not None else set())
        for setting in _SETTINGS:
            if types and all(name.startswith(setting.library) for name in types):
                maker = _named(file, setting.made_by) if setting.made_by else _maker(origin)
                if maker is not None and _can_take(maker, setting):
                    yield _proposal(file, call, maker, setting)
                return


def _made(file: File, used: ast.expr) -> ast.expr | None:
    """Return what the only assignment of a name or attribute gives it."""
    stores: list[ast.AST] = []
    if isinstance(used, ast.Name):
        stores = [n for n in file.names(file.home_of(used), used.id) if not isinstance(n.ctx, ast.Load)]
    elif isinstance(used, ast.Attribute):
        stores = [n for n in file.attributes(used.attr) if not isinstance(n.ctx, ast.Load)]
    assign = file.parents[stores[0]] if len(stores) == 1 else None
    return assign.value if isinstance(assign, ast.Assign) else None


def _maker(origin: ast.expr | None) -> ast.Call | None:
    """Return the call that makes an object, without what moves it to the device."""
    while (
        isinstance(origin, ast.Call) and isinstance(origin.func, ast.Attribute) and origin.func.attr in ("to", "cuda")
    ):
        origin = origin.func.value
    return origin if isinstance(origin, ast.Call) else None


def _named(file: File, name: str) -> ast.Call | None:
    """Return the only call of a class."""
    calls = [n for n in file.nodes if isinstance(n, ast.Call) and ast.unparse(n.func).rpartition(".")[2] == name]
    return calls[0] if len(calls) == 1 and file.seen(calls[0]).count == 1 else None


def _can_take(maker: ast.Call, setting: _Setting) -> bool:
    given = [keyword.arg for keyword in maker.keywords]
    starred = any(isinstance(a, ast.Starred) for a in maker.args) or None in given
    return not starred and setting.argument.partition("=")[0] not in given and questions.is_path(maker.func)


def _proposal(file: File, call: ast.Call, maker: ast.Call, setting: _Setting) -> Proposal:
    draft = Draft(file.text)
    draft.replace(maker, with_argument(maker, setting.argument))
    return Proposal(
        node=call,
        draft=draft,
        rule=setting.rule,
        rewrite=ID,
        change=setting.change,
        waits=file.seen(call).count,  # each call waits for the check at least once, and for other things too
        safety=Safety.UNSAFE,
        why=setting.why,
    )
