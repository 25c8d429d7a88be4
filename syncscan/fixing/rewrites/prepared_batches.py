"""Lets accelerate, and transformers' Trainer by it, copy batches to the device with `non_blocking=True`.

A configuration that the program gives already gets the argument. The loader that accelerate prepares is made in the
file by `DataLoader(...)`, which gets `pin_memory` too: a copy from pageable memory would wait. The Trainer's own loader
pins already. Each pinned batch is made from scratch and reaches only accelerate, which keeps nothing of it on the host;
without a GPU nothing is pinned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import makers, questions
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Draft, Edit
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "prepared-batches"
TITLE = "A library copies each batch and waits for it"
RULES = ("accelerate",)
SAFETY = Safety.SAFE
BEFORE = "from accelerate import Accelerator\n\naccelerator = Accelerator()"
AFTER = (
    "from accelerate import Accelerator, DataLoaderConfiguration\n\n"
    "accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(non_blocking=True))"
)
FEWEST = 3
SETTING = "DataLoaderConfiguration(non_blocking=True)"
"""As the rule's advice names it."""
CONFIGURATION = "DataLoaderConfiguration"
LOADER = "torch.utils.data.dataloader.DataLoader"
NOT_PINNED = "a copy with non_blocking=True waits too unless the batch is pinned, and the program gives {}"


def find(file: File) -> Iterator[Proposal | Left]:
    waiting = [node for node in file.waiting_for(SETTING) if file.waits_for(node, SETTING) >= FEWEST]
    if not waiting:
        return
    arguments = makers.only(file, "transformers.training_args")
    accelerator = makers.only(file, "accelerate.accelerator.Accelerator")
    for node in waiting:
        if arguments is not None:
            yield from _trainer(file, node, arguments)
        elif accelerator is not None:
            yield from _prepared(file, node, accelerator)


def _trainer(file: File, node: ast.AST, arguments: ast.Call) -> Iterator[Proposal | Left]:
    pins = makers.keyword(arguments, "dataloader_pin_memory")
    if isinstance(pins, ast.Constant) and not pins.value:
        yield Left(node, NOT_PINNED.format("dataloader_pin_memory=False"), SETTING)
    elif pins is None and makers.takes(arguments, "accelerator_config") and questions.is_path(arguments.func):
        draft, words = Draft(file.text), 'accelerator_config={"non_blocking": True}'
        draft.replace(arguments, with_argument(file.text, arguments, words))
        yield _proposal(file, node, draft, words)


def _prepared(file: File, node: ast.AST, accelerator: ast.Call) -> Iterator[Proposal | Left]:
    loaders = [n for n in file.nodes if isinstance(n, ast.Call) and _makes_loader(file, n)]
    pins = [makers.keyword(n, "pin_memory") for n in loaders]
    if any(isinstance(value, ast.Constant) and not value.value for value in pins):
        yield Left(node, NOT_PINNED.format("pin_memory=False"), SETTING)
        return
    if not loaders or not all(makers.takes(n) and len(n.args) < 8 for n in loaders):
        return
    draft, argument = Draft(file.text), "non_blocking=True"
    maker = _given(file, accelerator)
    if maker is None:
        configuration = _configuration(file, accelerator, draft)
        if not configuration or not makers.takes(accelerator, "dataloader_config"):
            return
        maker, argument = accelerator, f"dataloader_config={configuration}(non_blocking=True)"
    draft.replace(maker, with_argument(file.text, maker, argument))
    for loader, value in zip(loaders, pins, strict=True):
        if value is None:
            draft.replace(loader, with_argument(file.text, loader, "pin_memory=torch.cuda.is_available()"))
    yield _proposal(file, node, draft, argument)


def _given(file: File, accelerator: ast.Call) -> ast.Call | None:
    """Return the call that makes the configuration which the accelerator already gets, if it can take the argument."""
    value = makers.keyword(accelerator, "dataloader_config")
    call = makers.made(file, value) if isinstance(value, ast.Name) else value
    if not isinstance(call, ast.Call) or not makers.takes(call, "non_blocking") or call.args:
        return None
    return call if makers.full_name(file, call.func).endswith(f".{CONFIGURATION}") else None


def _makes_loader(file: File, call: ast.Call) -> bool:
    """Return whether a call makes a data loader: not what prepares one."""
    return makers.full_name(file, call.func).endswith(".DataLoader") and file.types(call) == {LOADER}


def _configuration(file: File, accelerator: ast.Call, draft: Draft) -> str:
    """Return how the file names the configuration's class, and have the draft import it; empty where it can't."""
    function = accelerator.func
    if makers.full_name(file, function) != "accelerate.Accelerator":
        return ""
    if isinstance(function, ast.Attribute):  # accelerate.Accelerator
        return f"{file.text.code(function.value)}.{CONFIGURATION}"
    if makers.full_name(file, ast.Name(CONFIGURATION)) == f"accelerate.{CONFIGURATION}":
        return CONFIGURATION
    names = (a for n in file.nodes if isinstance(n, ast.ImportFrom) and n.module == "accelerate" for a in n.names)
    alias = next((a for a in names if a.name == "Accelerator" and a.asname is None), None)
    if alias is None or not file.is_new(CONFIGURATION):
        return ""
    at = file.text.offset(alias.end_lineno or alias.lineno, alias.end_col_offset or 0)
    draft.other.append(Edit(at, at, 0, f", {CONFIGURATION}"))
    return CONFIGURATION


def _proposal(file: File, node: ast.AST, draft: Draft, argument: str) -> Proposal:
    change, waits = f"copy batches without waiting, by {argument}", file.waits_for(node, SETTING)
    return Proposal(node=node, draft=draft, change=change, waits=waits, setting=SETTING)
