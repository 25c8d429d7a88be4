"""Sums, means and losses of masked elements, and elementwise expressions of them, computed over all elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Proposal, rewrite
from syncscan.source.code_pattern import matched

_LINEAR = frozenset("neg float double detach clone".split())
_METHODS = _LINEAR | frozenset("abs square relu tanh sigmoid exp log1p sin cos clamp clamp_min clamp_max".split())
_COMPARISONS = frozenset("eq ne lt le gt ge".split())
_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.BitAnd, ast.BitOr)
_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_REPEATS_OR_SKIPS = (
    *(ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.IfExp, ast.BoolOp, ast.Compare),
)
_WITHOUT_GRADIENTS = frozenset("sqrt log pow half bfloat16 long int".split())


class Gathered(msgspec.Struct, frozen=True):
    """An elementwise expression of the elements that a mask selects.

    `tensors` are what the mask picks from; they have all the same dimensions.
    """

    mask: ast.expr
    tensors: tuple[ast.expr, ...]
    source: str
    """Computed of all elements."""
    grad: bool


def gathered(file: File, node: ast.expr, mask: ast.expr | None = None) -> Gathered | None:
    """Return an expression of masked elements without its mask; None where it isn't one, or has another mask."""
    return _GatherReader(file, mask).whole(node)


def named_mask(file: File, call: ast.expr, mask: ast.expr, draft: Draft) -> str | None:
    """Return the source of a mask that may be written several times: its name, or `hits`, made before the statement.

    None where it can't be made there.
    """
    if isinstance(mask, ast.Name | ast.Attribute):
        return file.text.code(mask)
    statement = file.statement_of(call)
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.Expr | ast.Return | ast.AnnAssign):
        return None
    if not _runs_once(file, call, statement):
        return None
    name = file.fresh("hits")
    draft.put_before(statement, f"{name} = {file.text.code(mask)}")
    return name


def _runs_once(file: File, call: ast.expr, statement: ast.stmt) -> bool:
    """Return whether a statement surely evaluates an expression once, and nothing in it changes a mask before."""
    begin, _ = file.text.span(call)
    for outer in file.ancestors(call):
        if isinstance(outer, _REPEATS_OR_SKIPS):
            return False
        for part in ast.iter_child_nodes(outer):
            before = hasattr(part, "lineno") and file.text.span(part)[1] <= begin
            if before and not expressions.is_pure(file, part):
                return False
        if outer is statement:
            break
    return True


class _GatherReader:
    def __init__(self, file: File, mask: ast.expr | None) -> None:
        self._file, self._mask = file, mask
        self._tensors: list[ast.expr] = []

    def whole(self, node: ast.expr) -> Gathered | None:
        source = self._of(node)
        if source is None or not self._tensors or self._mask is None or not self._alike():
            return None
        tensors = tuple(self._tensors)
        grad = any(t.grad for t in self._file.seen(node).tensors)
        if grad and not _is_linear(node):
            return None  # an element that the mask leaves out may have no finite gradient
        return Gathered(self._mask, tensors, source, grad)

    def _alike(self) -> bool:
        """Return whether all tensors have one shape, which starts with the mask's."""
        shapes = [self._file.seen(t).shapes for t in self._tensors]
        assert self._mask is not None
        masks = self._file.seen(self._mask).shapes
        return all(s == shapes[0] for s in shapes) and _begins(shapes[0], masks)

    def _of(self, node: ast.expr) -> str | None:
        if (parts := selection(node)) is not None:
            return self._source_of_selection(node, *parts)
        match node:
            case ast.BinOp(op=op) if isinstance(op, _OPERATIONS):
                return self._with(node, node.left, node.right)
            case ast.Compare(ops=[op], comparators=[right]) if isinstance(op, _ORDER):
                return self._with(node, node.left, right)
            case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
                return self._with(node, operand)
        if isinstance(node, ast.Call) and (call := matched("$x.$method(...)", node)):
            return self._of_call(node, call.x, call.method)
        return self._number(node)

    def _source_of_selection(self, node: ast.expr, of: ast.expr, by: ast.expr) -> str | None:
        file = self._file
        tensor, mask = file.device_tensor(of), expressions.mask_of(file, by)
        if tensor is None or mask is None or not expressions.is_pure(file, node):
            return None
        if isinstance(node, ast.Call) and file.seen(of).shapes != file.seen(by).shapes:
            return None  # masked_select broadcasts both
        if self._mask is not None and not expressions.same_source(file, self._mask, by):
            return None
        self._mask = self._mask or by
        self._tensors.append(of)
        source = file.text.code(of)
        return source if expressions.is_simple(of) else f"({source})"

    def _with(self, node: ast.expr, *parts: ast.expr) -> str | None:
        """Return the source of an expression with what its parts become, which keep their parentheses."""
        text = self._file.text
        at, end = text.span(node)
        source = ""
        for part in parts:
            new = self._of(part)
            if new is None:
                return None
            begin, behind = text.span(part)
            source, at = source + text.text[at:begin] + new, behind
        return source + text.text[at:end]

    def _of_call(self, node: ast.Call, x: ast.expr, method: str) -> str | None:
        if method in _COMPARISONS and len(node.args) == 1 and not node.keywords:
            return self._with(node, x, node.args[0])
        if method not in _METHODS | _WITHOUT_GRADIENTS:
            return self._number(node)
        inner = self._of(x)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if inner is None or not all(expressions.constant(self._file, a) for a in given):
            return None
        arguments = ", ".join(self._file.text.code(part) for part in (*node.args, *node.keywords))
        return f"{inner if expressions.is_simple(x) else f'({inner})'}.{method}({arguments})"

    def _number(self, node: ast.expr) -> str | None:
        """Return the source of a number or 0-dimensional tensor; None for other expressions."""
        file = self._file
        tensor = file.device_tensor(node)
        alone = tensor is not None and tensor.dims == 0
        if not (file.is_number(node) or alone) or not expressions.is_pure(file, node):
            return None
        return file.text.code(node)


def selection(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return tensor and mask of `x[mask]`, `x.masked_select(mask)` and `torch.masked_select(x, mask)`."""
    parts = matched("$x[$mask] | torch.masked_select($x, $mask) | $x.masked_select($mask)", node)
    return (parts.x, parts.mask) if parts else None


def _around_selections(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of an expression that compute with what the mask selects, and the selections themselves."""
    yield node
    if selection(node) is None:
        for part in ast.iter_child_nodes(node):
            yield from _around_selections(part)


def _begins(shapes: list[list[int]], masks: list[list[int]]) -> bool:
    return bool(shapes and masks) and all(any(shape[: len(mask)] == mask for mask in masks) for shape in shapes)


def _is_linear(node: ast.expr) -> bool:
    """Return whether the gradient of each element is a constant, whatever the elements are."""
    return all(_is_linear_part(part) for part in _around_selections(node))


def _is_linear_part(part: ast.AST) -> bool:
    match part:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return True
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return not (_selects(left) and _selects(right))
        case ast.BinOp(op=op, right=right):
            return isinstance(op, ast.Div) and not _selects(right)
    return _method(part) in ("", *_LINEAR)


def _selects(node: ast.AST) -> bool:
    return any(selection(n) is not None for n in ast.walk(node))


def _method(node: ast.AST) -> str:
    """Return the name of the method that computes with what a mask selects; empty for other nodes."""
    call = matched("$x.$method(...)", node) if selection(node) is None else None
    return call.method if call else ""


_REDUCTIONS = "torch.$name($x) | $x.$name() | $x.$name($dim) | $x.$name(dim=$dim)"
_EXACT = frozenset("float32 float64 int64 int32 bool".split())


@rewrite
def masked_reduction(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and file.seen(node).waits:
            yield from _of_reduction(file, node)


def _of_reduction(file: File, call: ast.Call) -> Iterator[Proposal]:
    reduction = matched(_REDUCTIONS, call)
    if not reduction or reduction.name not in ("sum", "mean"):
        return
    dim = getattr(reduction, "dim", None)
    picked = gathered(file, reduction.x)
    if (dim is not None and not matched("0", dim)) or picked is None or not _is_precise(file, picked):
        return
    draft = _draft(file, call, reduction.name, picked, "" if dim is None else "0")
    if draft is not None:
        change = f"compute the {reduction.name} over all elements with torch.where"
        yield Proposal(node=call, draft=draft, change=change, waits=file.seen(call).waits)


def _is_precise(file: File, picked: Gathered) -> bool:
    return all((t := file.device_tensor(x)) is not None and t.dtype in _EXACT for x in picked.tensors)


def _draft(file: File, call: ast.Call, name: str, picked: Gathered, dim: str) -> Draft | None:
    """Return the draft for a sum or mean over the selected elements (`0`), or over all dimensions (empty)."""
    tensor, mask = file.device_tensor(picked.tensors[0]), expressions.mask_of(file, picked.mask)
    assert tensor is not None
    assert mask is not None
    if dim and mask.dims != 1:
        return None
    draft, hits, simple = Draft(file.text), file.text.code(picked.mask), expressions.is_simple(picked.mask)
    source = picked.source
    if source == f"({file.text.code(picked.tensors[0])})":
        source = source[1:-1]
    if name == "mean" and not isinstance(picked.mask, ast.Name | ast.Attribute):
        fresh = named_mask(file, call, picked.mask, draft)
        if fresh is None:
            return None
        source, hits, simple = source.replace(hits, fresh), fresh, True
    more = tensor.dims - mask.dims
    total = f"torch.where({expressions.with_dims(hits, more, simple)}, {source}, 0).sum({dim})"
    if name == "mean":
        count = f"{hits}.sum()" if dim else expressions.count_of(file, picked.tensors[0], hits, more)
        total = expressions.quotient(file, call, total, count)
    draft.replace(call, total)
    return draft


_FUNCTIONS = "F.$name | nn.functional.$name | torch.nn.functional.$name"
_OPTIONS = frozenset("weight label_smoothing".split())
"""Options that don't depend on which elements there are."""
_PRECISE = frozenset({"float32", "float64"})


@rewrite
def masked_loss(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and len(node.args) == 2 and any(file.seen(a).waits for a in node.args):
            loss = matched(_FUNCTIONS, node.func)
            if loss and loss.name in ("cross_entropy", "nll_loss") and _is_plain(node.keywords):
                yield from _of_loss(file, node)


def _is_plain(options: list[ast.keyword]) -> bool:
    """Return whether a loss is a mean or a sum, and has no options that may change with more elements."""
    for option in options:
        reduced = option.arg == "reduction" and (matched("'mean'", option.value) or matched("'sum'", option.value))
        plain = option.arg in _OPTIONS and isinstance(option.value, ast.Constant | ast.Name | ast.Attribute)
        if not reduced and not plain:
            return False
    return True


def _of_loss(file: File, call: ast.Call) -> Iterator[Proposal]:
    scores = gathered(file, call.args[0])
    goals = gathered(file, call.args[1], scores.mask) if scores is not None else None
    draft = Draft(file.text)
    hits = named_mask(file, call, scores.mask, draft) if scores is not None and goals is not None else None
    if scores is None or goals is None or hits is None or not isinstance(call.args[1], ast.Subscript):
        return
    given, classes = file.device_tensor(scores.tensors[0]), file.device_tensor(goals.tensors[0])
    mask = expressions.mask_of(file, scores.mask)
    if given is None or classes is None or mask is None or given.dtype not in _PRECISE or classes.dtype != "int64":
        return
    if len(goals.tensors) != 1 or given.dims != mask.dims + 1 or classes.dims != mask.dims:
        return
    values = f"torch.where({expressions.with_dims(hits, 1, True)}, {scores.source}, 0)"
    targets = f"{goals.source}.masked_fill(~{hits}, -100)"
    if mask.dims > 1:
        values, targets = f"{values}.flatten(0, {mask.dims - 1})", f"{targets}.flatten()"
    options = "".join(f", {file.text.code(k)}" for k in call.keywords)
    draft.replace(call, f"{file.text.code(call.func)}({values}, {targets}{options})")
    change = "compute the loss over all elements, in which those outside of the mask count nothing"
    yield Proposal(node=call, draft=draft, change=change, waits=sum(file.seen(a).waits for a in call.args))
