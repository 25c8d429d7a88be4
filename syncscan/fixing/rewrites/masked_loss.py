"""Writes a cross entropy of masked elements as that of all elements, in which those outside of the mask count nothing.

They get targets that the loss ignores, -100. An empty mask gives NaN for a mean, and 0 for a sum, as before. Elements
outside of the mask get no gradient, even if they are NaN or infinite. Half precision isn't rewritten, since its sums
overflow at other points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.fixing import questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.gathered import gathered, named_mask
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety
from syncscan.source.code_pattern import matched

ID = "masked-loss"
TITLE = "A loss over masked elements"
RULES = ("boolean-index", "masked-select", "index-backward")
SAFETY = Safety.SAFE
BEFORE = "result = torch.nn.functional.cross_entropy(x[hits], labels[hits])"
AFTER = (
    "result = torch.nn.functional.cross_entropy(torch.where(hits[..., None], x, 0), labels.masked_fill(~hits, -100))"
)
_FUNCTIONS = "F.$name | nn.functional.$name | torch.nn.functional.$name"
_OPTIONS = frozenset("weight label_smoothing".split())
"""Options that don't depend on which elements there are."""
_PRECISE = frozenset({"float32", "float64"})


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if isinstance(node, ast.Call) and len(node.args) == 2 and any(file.seen(a).waits for a in node.args):
            loss = matched(_FUNCTIONS, node.func)
            if loss and loss.name in ("cross_entropy", "nll_loss") and _is_plain(node.keywords):
                yield from _of(file, node)


def _is_plain(options: list[ast.keyword]) -> bool:
    """Return whether a loss is a mean or a sum, and has no options that may change with more elements."""
    for option in options:
        reduced = option.arg == "reduction" and (matched("'mean'", option.value) or matched("'sum'", option.value))
        plain = option.arg in _OPTIONS and isinstance(option.value, ast.Constant | ast.Name | ast.Attribute)
        if not reduced and not plain:
            return False
    return True


def _of(file: File, call: ast.Call) -> Iterator[Proposal]:
    scores = gathered(file, call.args[0])
    goals = gathered(file, call.args[1], scores.mask) if scores is not None else None
    draft = Draft(file.text)
    hits = named_mask(file, call, scores.mask, draft) if scores is not None and goals is not None else None
    if scores is None or goals is None or hits is None or not isinstance(call.args[1], ast.Subscript):
        return
    given, classes = file.device_tensor(scores.tensors[0]), file.device_tensor(goals.tensors[0])
    mask = questions.mask_of(file, scores.mask)
    if given is None or classes is None or mask is None or given.dtype not in _PRECISE or classes.dtype != "int64":
        return
    if len(goals.tensors) != 1 or given.dims != mask.dims + 1 or classes.dims != mask.dims:
        return
    values = f"torch.where({questions.with_dims(hits, 1, True)}, {scores.source}, 0)"
    targets = f"{goals.source}.masked_fill(~{hits}, -100)"
    if mask.dims > 1:
        values, targets = f"{values}.flatten(0, {mask.dims - 1})", f"{targets}.flatten()"
    options = "".join(f", {file.text.code(k)}" for k in call.keywords)
    draft.replace(call, f"{file.text.code(call.func)}({values}, {targets}{options})")
    change = "compute the loss over all elements, in which those outside of the mask count nothing"
    yield Proposal(node=call, draft=draft, change=change, waits=sum(file.seen(a).waits for a in call.args))
