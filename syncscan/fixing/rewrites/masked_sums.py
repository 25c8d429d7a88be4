"""Sums, means and losses of masked elements, and elementwise expressions of them, computed over all elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from syncscan.fixing import expressions
from syncscan.fixing.edits import Draft, template
from syncscan.fixing.program_file import File
from syncscan.fixing.proposal import Answers, Proposal, rewrite
from syncscan.source.code_pattern import matched, primary

_SELECTION = "$x[$mask] | torch.masked_select($x, $mask) | $x.masked_select($mask)"
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


def gathered(file: File, node: ast.expr, mask: ast.expr | None = None) -> Gathered | None:
    """Return an expression of masked elements without its mask; None where it isn't one, or has another mask."""
    selections = _selections(file, node)
    if not selections:
        return None
    draft, tensors, mask = Draft(file.text), [], mask or matched(_SELECTION, selections[0]).mask  # type: ignore[union-attr]
    for selection in selections:
        parts = matched(_SELECTION, selection)
        if parts is None or not _selects(file, selection, parts.x, parts.mask):
            return None
        if not expressions.same_source(file, mask, parts.mask):
            return None
        tensors.append(parts.x)
        draft.replace(selection, primary(file.text.code(parts.x)))
    shapes = [file.seen(x).shapes for x in tensors]
    if any(s != shapes[0] for s in shapes) or not expressions.begin_with(shapes[0], file.seen(mask).shapes):
        return None
    if any(t.grad for t in file.seen(node).tensors) and node is not selections[0]:
        return None  # an element that the mask leaves out may have no finite gradient
    return Gathered(mask, tuple(tensors), draft.render(node))


def _selections(file: File, node: ast.expr) -> list[ast.expr] | None:
    """Return the selections that an expression is computed of, element by element; None where it isn't."""
    if matched(_SELECTION, node):
        return [node]
    operands = _operands(file, node)
    if operands is None:
        tensor = file.device_tensor(node)
        alone = file.is_number(node) or (tensor is not None and tensor.dims == 0)
        return [] if alone and expressions.is_pure(file, node) else None
    inner = [_selections(file, operand) for operand in operands]
    return None if None in inner else [selection for of in inner for selection in of or ()]


def _operands(file: File, node: ast.expr) -> list[ast.expr] | None:
    """Return what an elementwise operation computes with; None for any other expression."""
    match node:
        case ast.BinOp(op=op) if isinstance(op, _OPERATIONS):
            return [node.left, node.right]
        case ast.Compare(ops=[op], comparators=[right]) if isinstance(op, _ORDER):
            return [node.left, right]
        case ast.UnaryOp(op=ast.USub() | ast.Invert()):
            return [node.operand]
    if (compared := matched("$x.$method($y)", node)) and compared.method in _COMPARISONS:
        return [compared.x, compared.y]
    if (call := matched("$x.$method(...)", node)) and call.method in _METHODS | _WITHOUT_GRADIENTS:
        assert isinstance(node, ast.Call)
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return [call.x] if all(expressions.constant(file, a) for a in given) else None
    return None


def _selects(file: File, selection: ast.expr, x: ast.expr, mask: ast.expr) -> bool:
    """Return whether a mask on the device selects from a tensor there: of `masked_select` from one of its shape."""
    whole = not isinstance(selection, ast.Call) or file.seen(x).shapes == file.seen(mask).shapes
    on_device = file.device_tensor(x) is not None and expressions.mask_of(file, mask) is not None
    return whole and on_device and expressions.is_pure(file, selection)


def _named_mask(file: File, call: ast.expr, mask: ast.expr, draft: Draft) -> str | None:
    """Return the source of a mask that may be written several times: its name, or `hits`, made before the statement.

    None where it can't be made there.
    """
    if isinstance(mask, ast.Name | ast.Attribute):
        return file.text.code(mask)
    statement = file.statement_of(call)
    if not isinstance(statement, expressions.SIMPLE) or not _runs_once(file, call, statement):
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


_REDUCTIONS = "torch.$name($x) | $x.$name() | $x.$name($dim) | $x.$name(dim=$dim)"
_EXACT = frozenset("float32 float64 int64 int32 bool".split())


@rewrite
def masked_reduction(file: File) -> Answers:
    for node in file.nodes:
        reduction = matched(_REDUCTIONS, node) if isinstance(node, ast.Call) and file.seen(node).waits else None
        if reduction and reduction.name in ("sum", "mean"):
            dim, picked = getattr(reduction, "dim", None), gathered(file, reduction.x)
            if picked and (dim is None or matched("0", dim)) and _is_precise(file, picked):
                yield from _of_reduction(file, node, reduction.name, picked, "" if dim is None else "0")  # type: ignore[arg-type]


def _is_precise(file: File, picked: Gathered) -> bool:
    return all((t := file.device_tensor(x)) is not None and t.dtype in _EXACT for x in picked.tensors)


def _of_reduction(file: File, call: ast.Call, name: str, picked: Gathered, dim: str) -> Iterator[Proposal]:
    """Yield the proposal for a sum or mean over the selected elements (`0`), or over all dimensions (empty)."""
    x, tensor, mask = picked.tensors[0], file.device_tensor(picked.tensors[0]), expressions.mask_of(file, picked.mask)
    if tensor is None or mask is None or (dim and mask.dims != 1):
        return
    draft, hits = Draft(file.text), file.text.code(picked.mask)
    source = picked.source
    if source == f"({file.text.code(x)})":
        source = source[1:-1]
    if name == "mean":
        fresh = _named_mask(file, call, picked.mask, draft)
        if fresh is None:
            return
        source, hits = source.replace(hits, fresh), fresh
    mask_of_all = expressions.with_dims(hits, tensor.dims - mask.dims)
    code = f"torch.where($hits, $x, 0).sum({dim})"
    if name == "mean":
        every = mask_of_all if dim or mask_of_all == hits else f"{mask_of_all}.expand_as({file.text.code(x)})"
        code = f"{code} / {hits if dim else every}.sum()"
        # in parentheses where what is around binds tighter
        closer = ast.BinOp | ast.UnaryOp | ast.Attribute | ast.Subscript | ast.Compare
        code = f"({code})" if isinstance(file.parents[call], closer) else code
    draft.replace(call, template(code, hits=mask_of_all, x=source))
    change = f"compute the {name} over all elements with torch.where"
    yield Proposal(node=call, draft=draft, change=change, waits=file.seen(call).waits)


_FUNCTIONS = "F.$name | nn.functional.$name | torch.nn.functional.$name"
_OPTIONS = frozenset("weight label_smoothing".split())
"""Options that don't depend on which elements there are."""
_PRECISE = frozenset({"float32", "float64"})


@rewrite
def masked_loss(file: File) -> Answers:
    for node in file.nodes:
        if isinstance(node, ast.Call) and len(node.args) == 2 and any(file.seen(a).waits for a in node.args):
            loss = matched(_FUNCTIONS, node.func)
            if loss and loss.name in ("cross_entropy", "nll_loss") and all(map(_is_plain, node.keywords)):
                yield from _of_loss(file, node)


def _is_plain(option: ast.keyword) -> bool:
    """Return whether an option of a loss says that it is a mean or a sum, or changes nothing with more elements."""
    if option.arg == "reduction":
        return bool(matched("'mean' | 'sum'", option.value))
    return option.arg in _OPTIONS and isinstance(option.value, ast.Constant | ast.Name | ast.Attribute)


def _of_loss(file: File, call: ast.Call) -> Iterator[Proposal]:
    draft, scores = Draft(file.text), gathered(file, call.args[0])
    goals = gathered(file, call.args[1], scores.mask) if scores and matched("$x[$mask]", call.args[1]) else None
    hits = _named_mask(file, call, scores.mask, draft) if scores and goals else None
    if not scores or not goals or hits is None:
        return
    given, classes = file.device_tensor(scores.tensors[0]), file.device_tensor(goals.tensors[0])
    mask = expressions.mask_of(file, scores.mask)
    if given is None or classes is None or mask is None or given.dtype not in _PRECISE or classes.dtype != "int64":
        return
    if given.dims != mask.dims + 1 or classes.dims != mask.dims:
        return
    values, targets = "torch.where($where, $scores, 0)", "$goals.masked_fill(~$hits, -100)"
    if mask.dims > 1:
        values, targets = f"{values}.flatten(0, {mask.dims - 1})", f"{targets}.flatten()"
    options = "".join(f", {file.text.code(k)}" for k in call.keywords)
    parts = {"where": expressions.with_dims(hits, 1), "hits": hits, "scores": scores.source, "goals": goals.source}
    code = f"$loss({values}, {targets}$options)"
    draft.replace(call, template(code, loss=file.text.code(call.func), options=options, **parts))
    change = "compute the loss over all elements, in which those outside of the mask count nothing"
    yield Proposal(node=call, draft=draft, change=change, waits=sum(file.seen(a).waits for a in call.args))
