"""Turns off what a library does in every step: a filter of losses, a read for a hidden bar.

The trainer's object is made once in the file, by a call that doesn't give the setting. Without the filter a loss that
is NaN appears in the log. What Lightning logs for the progress bar is changed only if the Trainer draws none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import makers, questions
from syncscan.fixing.arguments import with_argument
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "library-settings"
TITLE = "A library reads values in every step"
RULES = ("transformers", "lightning")
SAFETY = Safety.UNSAFE
BEFORE = 'trainer = Trainer(model, TrainingArguments("out"), train_dataset=data)\ntrainer.train()'
AFTER = (
    'trainer = Trainer(model, TrainingArguments("out", logging_nan_inf_filter=False), train_dataset=data)\n'
    "trainer.train()"
)
FILTER = "logging_nan_inf_filter=False"
BAR = "prog_bar=False"
"""Settings as they are written, and as the rules' advice names them."""
_LOG = "$module.log(..., prog_bar=$shown) | $module.log_dict(..., prog_bar=$shown)"


def find(file: File) -> Iterator[Proposal | Left]:
    yield from _of_filter(file)
    yield from _of_bar(file)


def _of_filter(file: File) -> Iterator[Proposal]:
    """Yield the proposals for the Trainer of transformers, which asks whether each loss is finite."""
    arguments = makers.only(file, "transformers.training_args")
    takes = arguments is not None and makers.takes(arguments, FILTER.partition("=")[0])
    if arguments is None or not takes or not questions.is_path(arguments.func):
        return
    for node in file.waiting_for(FILTER):
        draft = Draft(file.text)
        draft.replace(arguments, with_argument(file.text, arguments, FILTER))
        change, why = f"turn off the filter with {FILTER}", "a loss that is NaN or infinite appears in the log"
        yield _proposal(file, node, draft, FILTER, change, why)


def _of_bar(file: File) -> Iterator[Proposal]:
    """Yield the proposals for values that Lightning reads for a bar that isn't drawn."""
    trainer = makers.only(file, "lightning.pytorch.trainer.", "pytorch_lightning.trainer.")
    if not matched("$trainer(..., enable_progress_bar=False)", trainer) or file.attributes("progress_bar_metrics"):
        return
    calls = (matched(_LOG, node) for node in file.nodes)
    logs = [call.shown for call in calls if call and matched("True", call.shown)]
    for node in file.waiting_for(BAR) if logs else ():
        draft = Draft(file.text)
        for shown in logs:
            draft.replace(shown, "False")
        change, why = f"log with {BAR}, as the Trainer draws no bar", "trainer.progress_bar_metrics lacks the value"
        yield _proposal(file, node, draft, BAR, change, why, rule="lightning")


def _proposal(file: File, node: ast.AST, draft: Draft, setting: str, change: str, why: str, rule: str = "") -> Proposal:
    waits = file.waits_for(node, setting)
    return Proposal(node=node, draft=draft, rule=rule, change=change, waits=waits, why=why, setting=setting)
