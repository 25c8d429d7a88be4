"""`torch.cuda.synchronize()`, `event.synchronize()`, `empty_cache()`, `barrier()` in what runs in each step."""

from __future__ import annotations

import ast
import re

from syncscan.lint.pattern import Hit, LintSite
from syncscan.lint.values import ValueKind

RULES = ("explicit-sync", "timing", "empty-cache", "barrier", "object-collective", "pin-memory")
LOOKS_AT = (ast.Call,)
_DEVICE = re.compile(r"^(cuda|xpu|accelerator|mtia|hip)\.synchronize$")
_EMPTY = re.compile(r"^(cuda|xpu|accelerator)(\.memory)?\.empty_cache$")
_OBJECTS = ("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list")
_WAIT = (
    "If it comes before a read of a non_blocking copy, wait for that copy alone: event.synchronize() on an event "
    "recorded after it. Else remove it from the loop: for timing, read events after the loop; between streams, use "
    "wait_stream or wait_event."
)
_TIMING = "Record events in the loop and read elapsed_time after it: a recorded event costs the host next to nothing."


def find(site: LintSite) -> Hit | None:
    """Match a call that waits for a device, a stream, an event or the other ranks."""
    node = site.node
    if not isinstance(node, ast.Call) or not (site.place or site.in_loop):
        return None
    name = site.torch(node)
    if _EMPTY.match(name):
        fix = "Remove it: the allocator reuses its memory. Against fragmentation, set expandable_segments:True."
        return Hit("empty-cache", "empty_cache waits for the device and frees its memory", fix)
    if _DEVICE.match(name):
        return _waits(site, "the program waits for the device")
    if (of := site.method("synchronize")) is not None and site.value(of).kind is ValueKind.EVENT:
        return _waits(site, "the program waits for an event or a stream")
    if name in ("distributed.barrier", "distributed.monitored_barrier"):
        return Hit(
            "barrier",
            "a barrier waits for all ranks",
            "Remove it: collectives synchronize the devices with each other.",
        )
    if name.removeprefix("distributed.") in _OBJECTS and name.startswith("distributed."):
        fix = "Use a gloo group for objects and tensors for the rest; not in every step."
        return Hit("object-collective", "objects of other ranks go through the host", fix)
    return _pins(site)


def _waits(site: LintSite, title: str) -> Hit:
    if site.timed:
        return Hit("timing", f"timing code waits: {title}", _TIMING, seldom=True)
    return Hit("explicit-sync", title, _WAIT)


def _pins(site: LintSite) -> Hit | None:
    of = site.method("pin_memory")
    if of is None or not site.place or site.value(of).kind not in (ValueKind.CPU, ValueKind.BATCH):
        return None
    return Hit(
        "pin-memory",
        "memory is pinned on the training thread",
        "Let the data loader pin (DataLoader(pin_memory=True)), or reuse one pinned buffer.",
        seldom=True,  # it takes the host's time, and waits for the device only where the allocator has to
    )
