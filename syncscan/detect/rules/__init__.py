"""The rules in the order they are asked: the first that fits names a sync point, so special ones come first."""

from __future__ import annotations

from syncscan.detect.rule import Rule
from syncscan.detect.rule_table import table_of
from syncscan.detect.rules import (
    calls_without_a_copy,
    checks,
    collectives,
    copies,
    inside_ops,
    libraries,
    numbers,
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


_MODULES = (calls_without_a_copy, collectives, libraries, checks, inside_ops, numbers, copies)
_WRITTEN = {name: match for module in _MODULES for name, match in vars(module).items()}


def _rule(id: str) -> Rule:
    """Return the rule that is a function of its name in a module beside this file, or else a table."""
    return Rule(id, _WRITTEN.get(id.replace("-", "_")) or table_of(id).match)


RULES = tuple(map(_rule, ORDER))

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
