"""Values that the host reads back (numbers, lists, truth values, what is printed), and copies to the device."""

from __future__ import annotations

import ast

from syncscan.lint.pattern import Hit, LintSite, pattern
from syncscan.lint.values import ValueKind, is_cpu
from syncscan.model.finding import Confidence
from syncscan.source.code_pattern import argument, constant

_COUNT = "Count on the device (bad += torch.isnan(loss)) and read the count every N steps"


@pattern("question", rules="tensor-bool nan-guard")
def truth(site: LintSite) -> Hit | None:
    """Match `if x.any():`, `while`, `assert`, `not`, `and`, `bool(x)`: Python takes a tensor's truth value."""
    value = site.value(site.node)
    if not site.waits_for(value) or not (value.mask or value.scalar):
        return None
    if isinstance(site.node, ast.Tuple | ast.List | ast.ListComp):
        return None
    if value.test:
        fix = (
            f"{_COUNT}; replace NaNs on the device with torch.nan_to_num or torch.where(torch.isfinite(loss), loss, 0)."
        )
        return Hit("nan-guard", f"a guard with {value.test} waits for its result", fix)
    return Hit(
        "tensor-bool",
        f"'{site.question}' waits for the truth value of a tensor",
        "For a check that raises, accumulate the results on the device (bad |= cond) and check once, after the loop or "
        "every N steps; for a choice of values torch.where(cond, a, b); multiply an update by the condition "
        "instead of skipping it.",
    )


@pattern("shown", rules="print-tensor log-scalar")
def shown(site: LintSite) -> Hit | None:
    """Match `print(loss)`, `f"{loss}"`, `logger.info(…, loss)`, `set_postfix(loss=loss)`: a tensor is shown."""
    if not site.waits_for(value := site.value(site.node)):
        return None
    fix = (
        "Collect detached values on the device and read them every N steps with one torch.stack(values).tolist(); in "
        "the loop print shapes only."
    )
    if value.scalar or site.shown_by in ("add_scalar", "set_postfix", "wandb.log", "add_scalars"):
        return Hit("log-scalar", f"{site.shown_by} reads a value back", fix)
    return Hit("print-tensor", f"{site.shown_by} reads a tensor back to show it", fix)


@pattern(ast.Call, rules="item nan-guard")
def numbers(site: LintSite) -> Hit | None:
    """Match `x.item()`, `float(x)`, `int(x)`: one number is read back."""
    item = site.matched("$x.item()")
    read = item or site.matched("float($x) | int($x) | complex($x)")
    if read is None:
        return None
    value = site.value(read.x)
    unclear = item is not None and site.may_wait_for(value)
    if not (unclear or site.waits_for(value)):
        return None
    if value.test:
        return Hit("nan-guard", f"a guard with {value.test} waits for its result", f"{_COUNT}.")
    return Hit(
        "item",
        f"{'.item()' if item else ast.unparse(site.call.func) + '()'} waits for a number",
        "If it is only logged or summed, keep it on the device (total += x.detach()) and read it every N steps, "
        "several values with one torch.stack(values).tolist(). If the host branches on it, use torch.where.",
        Confidence.LOW if unclear else Confidence.MEDIUM,
    )


@pattern(ast.Call, rules="tolist")
def tolist(site: LintSite) -> Hit | None:
    """Match `x.tolist()`: a tensor is copied back as a list; arrays and frames have the same method."""
    of = site.method("tolist")
    if of is None or not site.waits_for(site.value(of)):
        return None
    return Hit(
        "tolist",
        "tolist() waits for all values of a tensor",
        "Keep it on the device; if you need the list, read several steps at once, or copy into pinned "
        "memory with non_blocking=True, then event.record(), and read it a step later, after event.synchronize().",
    )


@pattern(ast.Call, rules="cpu")
def cpu(site: LintSite) -> Hit | None:
    """Match `x.cpu()`, `x.to("cpu")`: a tensor is copied to the host."""
    of = site.method("cpu")
    if of is None and is_cpu(argument(site.call, "device", 0)):
        of = site.method("to")
    # torch pins what `to` returns (`pin_out`, TensorConversions.cpp): with `non_blocking` it doesn't wait
    if of is None or site.asynchronous:
        return None
    value = site.value(of)
    unclear = site.may_wait_for(value)
    if not (unclear or site.waits_for(value)):
        return None
    return Hit(
        "cpu",
        "a copy to the host waits for the tensor",
        "Compute with it on the device. If the host needs it, copy it into pinned memory with non_blocking=True, then "
        "event.record(), and read a step later, after event.synchronize().",
        Confidence.LOW if unclear else Confidence.MEDIUM,
    )


_COMPARED = {
    "equal": "Keep (a == b).all() as a tensor; compare shapes on the host.",
    "allclose": "Keep torch.isclose(a, b).all() as a tensor and read it every N steps; or move the check to a test.",
}


@pattern(ast.Call, rules="equal allclose")
def comparisons(site: LintSite) -> Hit | None:
    """Match `torch.equal(a, b)`, `a.allclose(b)`, `torch.testing.assert_close`: the answer is copied to the host."""
    name = site.torch(site.call)
    rule = {"testing.assert_close": "allclose"}.get(name, name)
    operands = site.call.args[:2]
    if rule not in _COMPARED:
        of = site.method(*_COMPARED)
        if of is None or not site.value(of).tensor:
            return None
        rule, operands = site.call.func.attr, [of, *site.call.args[:1]]  # type: ignore[attr-defined]
    values = [site.value(operand) for operand in operands]
    if rule == "equal" and len(operands) == 2 and ast.dump(operands[0]) == ast.dump(operands[1]):
        return None  # equal looks at the storage first
    if any(value.on_host for value in values) or not site.waits_for(*values):
        return None
    return Hit(rule, f"{rule} reads its result back", _COMPARED[rule])


@pattern(ast.Compare, rules="contains")
def contains(site: LintSite) -> Hit | None:
    """Match `3 in t`, `x in tensor`: membership is tested on the host."""
    test = site.matched("$x in $values | $x not in $values")
    if test is None or isinstance(constant(test.x), str) or not site.waits_for(site.value(test.values)):
        return None
    return Hit(
        "contains",
        "'in' waits for its result",
        "Keep (t == value).any() as a tensor (torch.isin for many values), and act on it with torch.where.",
    )


@pattern(ast.Call, rules="tensor-constructor tensor-of-tensors")
def constructors(site: LintSite) -> Hit | None:
    """Match `torch.tensor([…], device=…)`, `x.new_tensor(…)`: host data is copied to the device."""
    call, name = site.call, site.torch(site.call)
    fresh = site.method("new_tensor")
    if not call.args or not (name in ("tensor", "as_tensor", "asarray") or fresh is not None):
        return None
    data, value = call.args[0], site.value(call)
    if name == "tensor" and _holds_tensors(data, site) and site.often:
        return Hit(
            "tensor-of-tensors",
            "torch.tensor reads the tensors in its list one by one",
            "Use torch.stack(values), which keeps them on the device.",
        )
    if fresh is not None:
        copies = site.value(fresh).tensor
    else:  # a tensor that is there already is returned unchanged, but by `torch.tensor`
        host = isinstance(data, ast.List | ast.Tuple | ast.Constant) or site.value(data).kind is ValueKind.HOST
        copies = argument(call, "device") is not None and value.tensor and (name == "tensor" or host)
    if not copies or site.value(data).tensor or not site.waits_for(value):
        return None
    return Hit(
        "tensor-constructor",
        "a constructor copies its data to the device and waits",
        "Create it once, before the loop (as a buffer of the module); or fill it on the device, which copies nothing: "
        "torch.full((), 3.0, device=…), torch.zeros, torch.arange.",
    )


def _holds_tensors(data: ast.expr, site: LintSite) -> bool:
    if isinstance(data, ast.List | ast.Tuple):
        return any(site.waits_for(site.value(element)) for element in data.elts)
    return isinstance(data, ast.ListComp) and site.waits_for(site.value(data))


@pattern(ast.Call, rules="to-device")
def to_device(site: LintSite) -> Hit | None:
    """Match `batch.to(device)`, `torch.from_numpy(a).cuda()`: a copy to the device that blocks."""
    of = site.method("cuda")
    if of is None and (where := argument(site.call, "device", 0)) is not None and site.evaluator.names_device(where):
        of = site.method("to")
    if of is None or not site.often or site.asynchronous:
        return None
    value = site.value(of)
    if value.kind is ValueKind.BATCH:
        fix = "DataLoader(pin_memory=True) and x.to(device, non_blocking=True); don't change it until the copy has run."
        reason = f"The loader (line {value.line}) doesn't pin its memory." if value.line and not value.pinned else ""
        return Hit("to-device", "a batch is copied to the device synchronously", fix, seen=reason)
    if value.kind is ValueKind.CPU and site.place:
        fix = (
            "The same values each time: make them once, before the loop, on the device; if torch creates them, pass "
            "device=. New data: pinned memory and non_blocking=True, unchanged until the copy has run."
        )
        return Hit("to-device", "a CPU tensor is copied to the device synchronously", fix)
    return None
