"""The rules in the order they are asked: the first that fits names a sync point, so special ones come first."""

from __future__ import annotations

from syncscan.detect.rule import Rule
from syncscan.detect.rule_table import table_of
from syncscan.detect.rules import (
    checks,
    collectives,
    copies,
    inside_ops,
    libraries,
    memory,
    numbers,
    synchronizes,
    whole_trace,
)

ORDER = (
    # what holds for the whole trace, or is meant
    "launch-blocking",
    "fsdp-rate-limiter",
    "ddp-statistics",
    "anomaly-mode",
    # code around the call tells more than the call
    "barrier",
    "object-collective",
    "unused-parameters",
    # libraries that programs train with: what who calls them can do
    "torchmetrics",
    "metric-validation",
    "lightning",
    "trl",
    "accelerate",
    "transformers",
    "peft",
    "timm",
    "fsdp2",
    "deepspeed",
    "megatron",
    "vllm",
    "sglang",
    "diffusers",
    "torchvision-detection",
    "torch-geometric",
    "torchdiffeq",
    "gpytorch",
    "pyro",
    # other code around the call
    "prod-backward",
    "print-tensor",
    "log-scalar",
    "distribution-args",
    "grad-scaler",
    "clip-grad",
    "generation-stop",
    "quantization",
    "checkpoint-save",
    "one-off",
    "optimizer-readback",
    "distributed",
    "collective-readback",
    "allclose",
    "nan-guard",
    "graph-break",
    "module-loading",
    # memory
    "pin-memory",
    "empty-cache",
    "allocator",
    # ops that wait inside: those that call others of the list come first
    "nested-tensor",
    "nms",
    "packed-sequence",
    "split-sizes",
    "size-inside-op",
    "argument-check",
    "linalg-check",
    "ctc-loss",
    "sparse-invariants",
    "coalesce",
    "sparse-op",
    "unique",
    "bincount",
    "histc",
    "one-hot",
    "repeat-interleave",
    "masked-select",
    "index-backward",
    "boolean-assign",
    "boolean-index",
    "nonzero",
    "fill-value",
    "equal",
    # one number
    "batch-norm-momentum",
    "tensor-of-tensors",
    "contains",
    "tensor-bool",
    "tensor-index",
    "number-argument",
    "item",
    # copies
    "tolist",
    "scalar-assign",
    "cpu-index",
    "tensor-constructor",
    "to-device",
    "pageable-readback",
    "cpu",
    # synchronizes
    "polling",
    "timing",
    "explicit-sync",
    "unclassified",
)
"""Ids of the rules, special before general; `unclassified` takes what is left."""


_MODULES = (whole_trace, collectives, libraries, checks, memory, inside_ops, numbers, copies, synchronizes)
_WRITTEN = {name: match for module in _MODULES for name, match in vars(module).items()}


def _rule(id: str) -> Rule:
    """Return the rule that is a function of its name in a module beside this file, or else a table."""
    return Rule(id, _WRITTEN.get(id.replace("-", "_")) or table_of(id).match)


RULES = tuple(map(_rule, ORDER))

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

PREAMBLE = """\
import torch
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x = torch.randn(64, 64, device=device)
mask = x > 0
labels = torch.randint(0, 8, (64,), device=device)
labels[:8] = torch.arange(8, device=device)
"""
"""Code that the examples in the rules' documentation rely on; each of them assigns `result`."""
