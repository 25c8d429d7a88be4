"""Writes a loss of masked elements as the loss of all elements in which those outside of the mask count nothing.

Losses that are 0 where both tensors are equal get zeros in both of them, and are divided by the number of matches.
Cross entropies get targets that they ignore, -100. An empty mask gives NaN for a mean, and 0 for a sum, as before.
Elements outside of the mask get no gradient, even if they are NaN or infinite. Half precision isn't rewritten, since
its sums overflow at other points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscan.facts.code_pattern import matched
from syncscan.fixing import makers, questions
from syncscan.fixing.edits import Draft
from syncscan.fixing.gathered import Gathered, gathered, named_mask
from syncscan.fixing.messages import Tensor
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Left, Proposal
from syncscan.model.fix import Safety

ID = "masked-loss"
TITLE = "A loss over masked elements"
RULES = ("boolean-index", "masked-select", "index-backward")
SAFETY = Safety.SAFE
BEFORE = "result = torch.nn.functional.cross_entropy(x[hits], labels[hits])"
AFTER = (
    "result = torch.nn.functional.cross_entropy(torch.where(hits[..., None], x, 0), labels.masked_fill(~hits, -100))"
)
_FUNCTIONS = "F.$name | nn.functional.$name | torch.nn.functional.$name"
_DISTANCES = {"mse_loss": "MSELoss", "l1_loss": "L1Loss", "smooth_l1_loss": "SmoothL1Loss", "huber_loss": "HuberLoss"}
"""Losses whose value is 0 where both tensors are 0 → the module that computes each."""
_ENTROPIES = {"cross_entropy": "CrossEntropyLoss", "nll_loss": "NLLLoss"}
_OPTIONS = frozenset("beta delta weight label_smoothing".split())
"""Options that don't depend on which elements there are."""
_PRECISE = frozenset({"float32", "float64"})


def find(file: File) -> Iterator[Proposal | Left]:
    for node in file.nodes:
        if isinstance(node, ast.Call) and len(node.args) == 2 and any(file.seen(a).waits for a in node.args):
            yield from _of(file, node)


def _of(file: File, call: ast.Call) -> Iterator[Proposal]:
    name, maker = _function(call), call
    if not name:
        name, module = _module(file, call)
        if module is None or module.args or call.keywords:
            return
        maker = module
    reduction = _reduction(maker.keywords)
    scores = gathered(file, call.args[0])
    goals = gathered(file, call.args[1], scores.mask) if scores is not None else None
    draft = Draft(file.text)
    hits = (
        named_mask(file, call, scores.mask, draft) if reduction and scores is not None and goals is not None else None
    )
    if scores is None or goals is None or hits is None:
        return
    if name in _ENTROPIES:
        written = _entropy(file, call, scores, goals, hits)
    else:
        written = _distance(file, call, scores, goals, hits, reduction)
    if written is not None:
        draft.replace(call, written)
        change = "compute the loss over all elements, in which those outside of the mask count nothing"
        yield Proposal(node=call, draft=draft, change=change, waits=sum(file.seen(a).waits for a in call.args))


def _function(call: ast.Call) -> str:
    """Return the name of the loss function that a call calls; empty for others."""
    loss = matched(_FUNCTIONS, call.func)
    return loss.name if loss and loss.name in {*_DISTANCES, *_ENTROPIES} else ""


def _module(file: File, call: ast.Call) -> tuple[str, ast.Call | None]:
    """Return the function that a loss module calls, and the call that makes the module; empty for others."""
    maker = makers.made(file, call.func) if isinstance(call.func, ast.Name) else None
    if isinstance(maker, ast.Call) and (module := matched("nn.$name | torch.nn.$name", maker.func)):
        for function, name in {**_DISTANCES, **_ENTROPIES}.items():
            if name == module.name:
                return function, maker
    return "", None


def _reduction(options: list[ast.keyword]) -> str:
    """Return `mean` or `sum`; empty where the loss is reduced otherwise, or has options that may change it."""
    reduction = "mean"
    for option in options:
        if option.arg == "reduction" and isinstance(option.value, ast.Constant):
            reduction = str(option.value.value)
        elif option.arg not in _OPTIONS or not isinstance(option.value, ast.Constant | ast.Name | ast.Attribute):
            return ""
    return reduction if reduction in ("mean", "sum") else ""


def _tensors(file: File, scores: Gathered, goals: Gathered) -> tuple[Tensor, Tensor, Tensor] | None:
    kinds = file.device_tensor(scores.tensors[0]), file.device_tensor(goals.tensors[0])
    mask = questions.mask_of(file, scores.mask)
    if kinds[0] is None or kinds[1] is None or mask is None or kinds[0].dtype not in _PRECISE:
        return None
    return kinds[0], kinds[1], mask


def _distance(file: File, call: ast.Call, scores: Gathered, goals: Gathered, hits: str, reduction: str) -> str | None:
    """Return a loss between two tensors of one shape that are 0 outside of the mask."""
    kinds = _tensors(file, scores, goals)
    if kinds is None or kinds[0].dtype != kinds[1].dtype:
        return None
    if file.seen(scores.tensors[0]).shapes != file.seen(goals.tensors[0]).shapes:
        return None
    more = kinds[0].dims - kinds[2].dims
    condition = questions.with_dims(hits, more, True)
    both = ", ".join(f"torch.where({condition}, {part.source}, 0)" for part in (scores, goals))
    code = file.text.code
    if not _function(call):
        loss = f"{code(call.func)}({both})"
        if reduction == "mean" and kinds[0].dtype == "float64":
            return None  # the factor would be rounded to float32
        return loss if reduction == "sum" else f"({loss} * ({hits}.numel() / {hits}.sum()))"
    options = "".join(f", {code(k)}" for k in call.keywords if k.arg != "reduction")
    loss = f'{code(call.func)}({both}{options}, reduction="sum")'
    if reduction == "sum":
        return loss
    return questions.quotient(file, call, loss, questions.count_of(file, scores.tensors[0], hits, more))


def _entropy(file: File, call: ast.Call, scores: Gathered, goals: Gathered, hits: str) -> str | None:
    """Return a cross entropy whose targets outside of the mask are ignored."""
    kinds = _tensors(file, scores, goals)
    if kinds is None or kinds[1].dtype != "int64" or len(goals.tensors) != 1:
        return None
    dims = [kind.dims for kind in kinds]
    if dims[0] != dims[2] + 1 or dims[1] != dims[2] or not isinstance(call.args[1], ast.Subscript):
        return None
    values = f"torch.where({questions.with_dims(hits, 1, True)}, {scores.source}, 0)"
    classes = f"{goals.source}.masked_fill(~{hits}, -100)"
    if dims[2] > 1:
        values, classes = f"{values}.flatten(0, {dims[2] - 1})", f"{classes}.flatten()"
    options = "".join(f", {file.text.code(k)}" for k in call.keywords)
    return f"{file.text.code(call.func)}({values}, {classes}{options})"
