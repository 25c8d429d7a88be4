"""Arguments of libraries that take away a wait."""

from __future__ import annotations

import ast

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, Edit
from syncscan.fixing.expressions import with_argument
from syncscan.fixing.flow import callees
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import FEWEST, Answers, Left, Proposal, rewrite
from syncscan.source.code_pattern import argument, called, key

NON_BLOCKING = "DataLoaderConfiguration(non_blocking=True)"
"""As the rule's advice names it."""
CONFIGURATION = "DataLoaderConfiguration"
LOADER = "torch.utils.data.dataloader.DataLoader"
NOT_PINNED = "a copy with non_blocking=True waits too unless the batch is pinned, and the program gives {}"


@rewrite
def prepared_batches(file: File) -> Answers:
    waiting = [node for node in file.waiting_for(NON_BLOCKING) if file.waits_for(node, NON_BLOCKING) >= FEWEST]
    if not waiting:
        return
    arguments = expressions.only(file, "transformers.training_args")
    accelerator = expressions.only(file, "accelerate.accelerator.Accelerator")
    for node in waiting:
        if arguments is not None:
            yield from _trainer(file, node, arguments)
        elif accelerator is not None:
            yield from _prepared(file, node, accelerator)


def _trainer(file: File, node: ast.AST, arguments: ast.Call) -> Answers:
    pins = argument(arguments, "dataloader_pin_memory")
    if isinstance(pins, ast.Constant) and not pins.value:
        yield Left(node, NOT_PINNED.format("dataloader_pin_memory=False"), NON_BLOCKING)
    elif pins is None and expressions.takes(arguments, "accelerator_config") and key(arguments.func):
        draft, words = Draft(file.text), 'accelerator_config={"non_blocking": True}'
        draft.replace(arguments, with_argument(file.text, arguments, words))
        yield _without_wait(file, node, draft, words)


def _prepared(file: File, node: ast.AST, accelerator: ast.Call) -> Answers:
    loaders = [n for n in file.nodes if isinstance(n, ast.Call) and _makes_loader(file, n)]
    pins = [argument(n, "pin_memory") for n in loaders]
    if any(isinstance(value, ast.Constant) and not value.value for value in pins):
        yield Left(node, NOT_PINNED.format("pin_memory=False"), NON_BLOCKING)
        return
    if not loaders or not all(expressions.takes(n) and len(n.args) < 8 for n in loaders):
        return
    draft, words = Draft(file.text), "non_blocking=True"
    maker = _given(file, accelerator)
    if maker is None:
        configuration = _configuration(file, accelerator, draft)
        if not configuration or not expressions.takes(accelerator, "dataloader_config"):
            return
        maker, words = accelerator, f"dataloader_config={configuration}(non_blocking=True)"
    draft.replace(maker, with_argument(file.text, maker, words))
    for loader, value in zip(loaders, pins, strict=True):
        if value is None:
            draft.replace(loader, with_argument(file.text, loader, "pin_memory=torch.cuda.is_available()"))
    yield _without_wait(file, node, draft, words)


def _given(file: File, accelerator: ast.Call) -> ast.Call | None:
    """Return the call that makes the configuration which the accelerator already gets, if it can take the argument."""
    value = argument(accelerator, "dataloader_config")
    call = file.only_value(value) if isinstance(value, ast.Name) else value
    if not isinstance(call, ast.Call) or not expressions.takes(call, "non_blocking") or call.args:
        return None
    return call if callees.full_name(file, call.func).endswith(f".{CONFIGURATION}") else None


def _makes_loader(file: File, call: ast.Call) -> bool:
    """Return whether a call makes a data loader: not what prepares one."""
    return callees.full_name(file, call.func).endswith(".DataLoader") and file.types(call) == {LOADER}


def _configuration(file: File, accelerator: ast.Call, draft: Draft) -> str:
    """Return how the file names the configuration's class, and have the draft import it; empty where it can't."""
    function = accelerator.func
    if callees.full_name(file, function) != "accelerate.Accelerator":
        return ""
    if isinstance(function, ast.Attribute):  # accelerate.Accelerator
        return f"{file.text.code(function.value)}.{CONFIGURATION}"
    if callees.full_name(file, ast.Name(CONFIGURATION)) == f"accelerate.{CONFIGURATION}":
        return CONFIGURATION
    names = (a for n in file.nodes if isinstance(n, ast.ImportFrom) and n.module == "accelerate" for a in n.names)
    alias = next((a for a in names if a.name == "Accelerator" and a.asname is None), None)
    if alias is None or not file.is_new(CONFIGURATION):
        return ""
    at = file.text.offset(alias.end_lineno or alias.lineno, alias.end_col_offset or 0)
    draft.other.append(Edit(at, at, 0, f", {CONFIGURATION}"))
    return CONFIGURATION


def _without_wait(file: File, node: ast.AST, draft: Draft, words: str) -> Proposal:
    change, waits = f"copy batches without waiting, by {words}", file.waits_for(node, NON_BLOCKING)
    return Proposal(node=node, draft=draft, change=change, waits=waits, setting=NON_BLOCKING)


RAISES_LATER = "an invalid argument raises later, or never"


@rewrite
def distribution_checks(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).count >= FEWEST and (waits := file.own_waits(node)):
            types = file.types(node)
            makes = bool(types) and all(name.startswith("torch.distributions.") for name in types)
            if makes and expressions.takes(node, "validate_args") and called(node)[:1].isupper():
                draft = Draft(file.text)
                draft.replace(node, with_argument(file.text, node, "validate_args=False"))
                change = "turn off the argument checks with validate_args=False"
                yield Proposal(node=node, draft=draft, change=change, waits=waits, why=RAISES_LATER)
