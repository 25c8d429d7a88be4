"""`set_detect_anomaly(True)`, `BatchNorm(momentum=None)`: settings that make later steps wait, wherever they are."""

from __future__ import annotations

import ast

from syncscan.lint.imported_names import argument, is_true
from syncscan.lint.pattern import Hit, LintSite

RULES = ("anomaly-mode", "batch-norm-momentum")
LOOKS_AT = (ast.Call,)


def find(site: LintSite) -> Hit | None:
    """Match anomaly mode with a check for NaN, or a normalization that counts its batches."""
    node = site.node
    if not isinstance(node, ast.Call):
        return None
    name = site.torch(node)
    if name in ("autograd.detect_anomaly", "autograd.set_detect_anomaly"):
        on = name.endswith("detect_anomaly") and not name.endswith("set_detect_anomaly")
        if not (on or is_true(argument(node, "mode", 0))) or argument(node, "check_nan") is not None:
            return None
        fix = "Turn it on only while looking for a NaN."
        return Hit("anomaly-mode", "anomaly mode reads a value back after each node of the backward pass", fix)
    momentum = argument(node, "momentum") if name.startswith("nn.BatchNorm") else None
    if isinstance(momentum, ast.Constant) and momentum.value is None:
        return Hit("batch-norm-momentum", "BatchNorm reads its counter back in each pass", "Set a momentum.")
    return None
