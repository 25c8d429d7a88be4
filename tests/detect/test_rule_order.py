"""The order of the rules: which other rules match the calls that a rule names, and a reason for each such pair."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable

from syncscan import load
from syncscan.detect import Call, calls_of
from syncscan.detect.rules import RULES
from tests.each import each
from tests.recordings import FOLDER, analyzed, large

PLACE = {rule.id: place for place, rule in enumerate(RULES)}
Pair = tuple[str, str]


LATE = {
    "nonzero": "Many ops count their matches with nonzero; one that the program called itself has a fix of its own.",
    "tensor-bool": "Any if reads a truth value; the check and its caller decide the fix.",
    "item": "Nearly every read of one number ends in item; the use of the number decides the fix.",
    "cpu": "Nearly every read-back ends in a copy to the host; the op around it decides the fix.",
    "to-device": "Any blocking copy to the device; the copied data and its use decide the fix.",
    "explicit-sync": "Any bare synchronize; a scope, frame or call beside it may say that a library or timer made it.",
}
"""Rules for what is left of a kind, and why others of that kind are asked first; `unclassified` is left out."""

BEFORE = {
    ("ddp-statistics", "timing"): "The elapsed time is read by DDP itself, for its log, and not by the program.",
    ("barrier", "distributed"): "A barrier lies in torch.distributed's code, but no sizes or state are exchanged.",
    (
        "object-collective",
        "distributed",
    ): "Object collectives are a part of torch.distributed, with a fix of their own.",
    ("object-collective", "collective-readback"): "The value read is the object's size or bytes, no reduced tensor.",
    ("unused-parameters", "collective-readback"): "DDP's map of used parameters follows its own all-reduce.",
    ("print-tensor", "log-scalar"): "Printing detaches each element before it reads it, as formatting one value does.",
    ("print-tensor", "masked-select"): "The formatter selects the finite values; the program selects nothing.",
    ("print-tensor", "tolist"): "The formatter resolves conjugation before it copies, as tolist does.",
    (
        "torchmetrics",
        "bincount",
    ): "The metric counts; who calls it can only call it less often, or have it count otherwise.",
    ("prod-backward", "masked-select"): "cumprod's backward selects by a mask of its own; the program selects nothing.",
    ("one-off", "linalg-check"): "A library sets itself up, once; the solver's own waits come each time.",
    (
        "allocator",
        "linalg-check",
    ): "Whether torch or the solver allocates the memory is unknown; only the allocation is certain.",
    ("one-off", "allocator"): "No allocation failed before it: a library sets itself up, and torch frees no memory.",
    ("metric-validation", "unique"): "It is the metric's check that calls unique; validate_args=False avoids it.",
    ("optimizer-readback", "coalesce"): "SparseAdam coalesces in its step; the program can only choose the optimizer.",
    ("nan-guard", "pin-memory"): "The first read of a guard pins the buffer that it reads into; without it none is.",
    ("empty-cache", "allocator"): "Memory freed outside of any op is given back on demand, not for want of it.",
    ("nested-tensor", "tolist"): "A nested tensor reads its lengths with tolist inside; the program has no list.",
    ("nms", "masked-select"): "nms ends in a selection of its own; the number of boxes is what it waits for.",
    ("split-sizes", "tolist"): "The list is for a split; where its sizes come from is what to change.",
    ("size-inside-op", "cpu-index"): "matrix_exp indexes with an index of its own; the program passed none.",
    ("size-inside-op", "masked-select"): "combinations selects through a mask of its own: index instead.",
    ("size-inside-op", "scalar-assign"): "matrix_exp assigns a number inside; the program assigned none.",
    ("size-inside-op", "unique"): "matrix_exp groups its matrices with unique inside; the program asked for no values.",
    ("argument-check", "equal"): "cov and istft compare only to check; the program never called equal.",
    ("linalg-check", "pageable-readback"): "The copy is the library's way to read its flags; the program can't pin it.",
    (
        "sparse-invariants",
        "sparse-op",
    ): "A check can be turned off and a size given; what a sparse op counts itself can't.",
    ("coalesce", "sparse-op"): "coalesce has a fix that other sparse ops lack: say that it is coalesced.",
    ("index-backward", "boolean-assign"): "The assignment is autograd's; the forward is what can be changed.",
    ("index-backward", "boolean-index"): "The indexing is autograd's; the forward is what can be changed.",
    ("tensor-of-tensors", "tensor-constructor"): "The list holds device tensors: stacking them needs no copy at all.",
    ("tensor-index", "number-argument"): "A flag as an index makes a tensor of its size on the way to the view.",
    ("scalar-assign", "cpu-index"): "What is copied is the value assigned, one number, and not the index.",
    ("cpu-index", "tensor-constructor"): "A list as an index goes through the constructor; the index is what to keep.",
}
"""Why the first of two rules is asked before the second, for pairs that both match a recorded call."""


@functools.cache
def recorded() -> tuple[dict[Pair, int], dict[Pair, str], Counter[str]]:
    """Count recorded calls: per pair of first and further match with an example, and per rule."""
    count: Counter[Pair] = Counter()
    example: dict[Pair, str] = {}
    named: Counter[str] = Counter()
    for path in sorted(FOLDER.rglob("*.pt.trace.json.gz")):
        for call in calls_of(load.load(path) if large(path) else analyzed(path).trace):
            first, *others = [rule.id for rule in RULES if rule.match(call) is not None]
            named[first] += 1
            for other in others[:-1]:
                count[first, other] += 1
                example.setdefault((first, other), chain(call))
    return count, example, named


def chain(call: Call) -> str:
    return " > ".join((*call.ops, *call.point.apis))


def reason(pair: Pair) -> str:
    return BEFORE.get(pair) or LATE.get(pair[1], "")


def in_order(pair: Pair) -> tuple[int, int]:
    return PLACE[pair[0]], PLACE[pair[1]]


def test_every_pair_has_a_reason() -> None:
    """Whoever moves a rule reads what its place is for."""
    count, _, _ = recorded()
    bare = [pair for pair in sorted(count, key=in_order) if pair not in BEFORE and pair[1] not in LATE]
    assert bare == [], "write into BEFORE why the first is asked before the second"


def test_no_reason_is_stale_or_reported_twice() -> None:
    """Each pair with a reason is recorded, in this order, and no general reason covers it already."""
    count, _, _ = recorded()
    assert [pair for pair in BEFORE if pair not in count] == []
    assert [pair for pair in BEFORE if pair[1] in LATE] == []
    assert [late for late in LATE if late not in {loser for _, loser in count}] == []


def test_general_rules_come_after_all_that_they_are_late_for() -> None:
    """A rule for what is left of a kind wins over no rule that isn't as general."""
    count, _, _ = recorded()
    general = {"unclassified", *LATE}
    assert [pair for pair in count if pair[0] in general and pair[1] not in general] == []


def test_the_order_on_the_recordings_is_the_golden_one(golden: Callable[[str, str], None]) -> None:
    """A change of order, or of what a rule matches, is seen in the table of pairs."""
    count, example, named = recorded()
    lines = [
        "Written by `pytest tests/detect/test_rule_order.py --update-golden`, from all calls in `sample_traces`.",
        "",
        f"{sum(named.values())} calls. What each rule names: "
        + ", ".join(f"{rule} {named[rule]}" for rule in PLACE if named[rule])
        + ".",
        "",
        "Where a second rule matches too (`unclassified`, which matches everything, is left out):",
        "",
        "| named by | before | calls | why | one of them |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {first} | {other} | {count[first, other]} | {reason((first, other))} | `{example[first, other]}` |"
        for first, other in sorted(count, key=in_order)
    ]
    golden("rule_order.md", "\n".join(lines) + "\n")


@each("pair", BEFORE, ids=" before ".join)
def test_pairs_with_a_reason_stand_in_its_order(pair: Pair) -> None:
    """The reasons and the list agree."""
    assert PLACE[pair[0]] < PLACE[pair[1]]
