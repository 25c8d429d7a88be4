"""Intended waits, and settings that make later steps wait."""

from __future__ import annotations

import ast
import re

from syncscan.lint.pattern import Hit, LintSite, pattern
from syncscan.lint.values import ValueKind
from syncscan.source.names import argument, constant


@pattern(ast.Call, rules="anomaly-mode batch-norm-momentum")
def settings(site: LintSite) -> Hit | None:
    """Match `set_detect_anomaly(True)`, `BatchNorm(momentum=None)`: settings that make later steps wait, anywhere."""
    call, name = site.call, site.torch(site.call)
    on = name == "autograd.detect_anomaly"
    on = on or (name == "autograd.set_detect_anomaly" and constant(argument(call, "mode", 0)) is True)
    if on and argument(call, "check_nan") is None:
        fix = "Turn it on only while looking for a NaN."
        return Hit("anomaly-mode", "anomaly mode reads a value back after each node of the backward pass", fix)
    momentum = argument(call, "momentum") if name.startswith("nn.BatchNorm") else None
    if isinstance(momentum, ast.Constant) and momentum.value is None:
        return Hit("batch-norm-momentum", "BatchNorm reads its counter back in each pass", "Set a momentum.")
    return None


_DEVICE = re.compile(r"^(cuda|xpu|accelerator|mtia|hip)\.synchronize$")
_EMPTY = re.compile(r"^(cuda|xpu|accelerator)(\.memory)?\.empty_cache$")
_BARRIERS = ("distributed.barrier", "distributed.monitored_barrier")
_OBJECTS = frozenset(
    f"distributed.{name}_object{end}"
    for name, end in (("all_gather", ""), ("broadcast", "_list"), ("gather", ""), ("scatter", "_list"))
)


@pattern(ast.Call, rules="explicit-sync timing empty-cache barrier object-collective pin-memory")
def synchronizes(site: LintSite) -> Hit | None:
    """Match `torch.cuda.synchronize()`, `event.synchronize()`, `empty_cache()`, `barrier()` in each step."""
    if not site.often:
        return None
    name = site.torch(site.call)
    if _EMPTY.match(name):
        fix = "Remove it: the allocator reuses its memory. Against fragmentation, set expandable_segments:True."
        return Hit("empty-cache", "empty_cache waits for the device and frees its memory", fix)
    if _DEVICE.match(name):
        return _waits(site, "the program waits for the device")
    if (of := site.method("synchronize")) is not None and site.value(of).kind is ValueKind.EVENT:
        return _waits(site, "the program waits for an event or a stream")
    if name in _BARRIERS:
        fix = "Remove it: collectives synchronize the devices with each other."
        return Hit("barrier", "a barrier waits for all ranks", fix)
    if name in _OBJECTS:
        fix = "Use a gloo group for objects and tensors for the rest; not in every step."
        return Hit("object-collective", "objects of other ranks go through the host", fix)
    of = site.method("pin_memory")
    if of is None or not site.place or site.value(of).kind not in (ValueKind.CPU, ValueKind.BATCH):
        return None
    fix = "Let the data loader pin (DataLoader(pin_memory=True)), or reuse one pinned buffer."
    # it takes the host's time, and waits for the device only where the allocator has to
    return Hit("pin-memory", "memory is pinned on the training thread", fix, seldom=True)


def _waits(site: LintSite, title: str) -> Hit:
    if site.around.timed:
        fix = (
            "Record events in the loop and read elapsed_time after it: a recorded event costs the host next to nothing."
        )
        return Hit("timing", f"timing code waits: {title}", fix, seldom=True)
    return Hit(
        "explicit-sync",
        title,
        "If it comes before a read of a non_blocking copy, wait for that copy alone: event.synchronize() on an event "
        "recorded after it. Else remove it from the loop: for timing, read events after the loop; between streams, use "
        "wait_stream or wait_event.",
    )
