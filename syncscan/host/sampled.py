"""Summarize where the host's time goes by capture's samples: by phase, by owner, by function and line.

A sample names functions, not their purpose. The calls of torch around them tell the phase: the loader's, a module's,
`backward`, an optimizer's. A line whose calls are nearly all of one phase belongs to it itself: the line
`loss = model(x).square().mean()` is forward with all its ops. The rest lies between phases: loop, trainer, logging.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from syncscan.model.capture import HostSamples, SampledLine
from syncscan.model.finding import Phase
from syncscan.model.host import USER, HostNode, OtherThread, SampledHost, ThreadUse
from syncscan.model.libraries import in_package, is_library, package_of
from syncscan.model.trace import Trace

SINGLE = 0.9
"""Share of a line's calls in one phase from which on the line is of that phase. The rest are samples one call late, as
Python handles a signal between two instructions, but not after each of them."""

_CALLS = (
    (Phase.DATA, "torch/utils/data", None),
    (Phase.DATA, "torchdata", None),
    (Phase.DATA, "accelerate/data_loader.py", None),
    (Phase.OPTIMIZER, "torch/optim/lr_scheduler.py", {"step", "wrapper"}),
    (Phase.OPTIMIZER, "torch/optim", {"step", "zero_grad", "wrapper", "_use_grad"}),
    (Phase.OPTIMIZER, "torch/amp/grad_scaler.py", {"step", "unscale_", "update"}),
    (Phase.OPTIMIZER, "torch/cuda/amp/grad_scaler.py", {"step", "unscale_", "update"}),
    (Phase.OPTIMIZER, "torch/nn/modules/module.py", {"zero_grad"}),
    (Phase.BACKWARD, "torch/autograd", {"backward", "grad", "_engine_run_backward"}),
    (Phase.FORWARD, "torch/nn/modules/module.py", {"__call__", "_wrapped_call_impl", "_call_impl"}),
    (Phase.FORWARD, "torch/nn/functional.py", None),
    (Phase.FORWARD, "torch/autograd/function.py", {"apply"}),
    (Phase.FORWARD, "torch/utils/checkpoint.py", None),
    (Phase.FORWARD, "torch/_functorch/_aot_autograd", None),
    (Phase.FORWARD, "torch/_inductor", None),
)
"""Functions that begin a phase: calls of these functions (None: all) in this file or folder; the first match counts."""

_MODULE = "torch/nn/modules/module.py"


def sampled_of(trace: Trace, unprofiled_us: float | None) -> SampledHost | None:
    """Return where the host's time goes by capture's samples; None without samples.

    If the step's unprofiled time is known, the times of the tree add up to it.
    """
    capture = trace.info.capture
    samples = capture.host
    if samples is None:
        return None
    undisturbed = capture.unprofiled_step_us
    step_us = unprofiled_us or samples.step_us
    phases, totals = _phases(samples)
    order = _callers_first(samples, totals)
    return SampledHost(
        step_us=step_us,
        steps=samples.steps,
        samples=samples.samples,
        overhead=samples.step_us / undisturbed - 1 if undisturbed else None,
        nodes=_tree(samples, step_us, order, phases, totals),
        used=_used(samples, step_us, order),
        others=_others(samples, step_us),
    )


def _used(samples: HostSamples, step_us: float, order: Sequence[int]) -> ThreadUse | None:
    used = samples.used
    if used is None:
        return None
    scale = step_us / used.wall_ns
    return ThreadUse(
        off_us=used.off_ns * scale,
        on_us=max(0, used.wall_ns - used.off_ns) / samples.steps / 1e3,
        delayed_us=None if used.delayed_ns is None else used.delayed_ns * scale,
        faults=used.faults / samples.steps,
        fault_us=None if used.fault_ns is None else used.fault_ns / 1e3,
        stopped_us=tuple(samples.nodes[number].stopped_ns * scale for number in order),
        touching_us=tuple(samples.nodes[number].touching_ns * scale for number in order),
        huge=(used.huge or 0) / samples.steps,
        faults_in=tuple(samples.nodes[number].faults / samples.steps for number in order),
    )


def _others(samples: HostSamples, step_us: float) -> tuple[OtherThread, ...]:
    scale = step_us / samples.used.wall_ns if samples.used else 0.0
    return tuple(
        OtherThread(
            name=thread.name,
            us=thread.ran_ns * scale,
            beside_us=thread.beside_ns * scale,
            places=tuple(_describe(place) for place in thread.places),
        )
        for thread in samples.threads
    )


def _describe(place: SampledLine) -> str:
    return f"{PurePath(place.file.replace(chr(92), '/')).name}:{place.line} {place.function}"


def _tree(
    samples: HostSamples, step_us: float, order: Sequence[int], phases: Sequence[Phase], totals: Sequence[int]
) -> tuple[HostNode, ...]:
    owners = [package_of(file) or USER for file, _ in samples.frames]
    us = step_us / samples.samples
    nodes: list[HostNode] = []
    place = {-1: -1}
    for number in order:
        node = samples.nodes[number]
        file, function = samples.frames[node.frame]
        place[number] = len(nodes)
        nodes.append(
            HostNode(
                parent=place[node.parent],
                function=function,
                file=file,
                line=node.line,
                owner=owners[node.frame],
                phase=phases[number],
                us=totals[number] * us,
                self_us=node.own * us,
            )
        )
    return tuple(nodes)


def _callers_first(samples: HostSamples, totals: Sequence[int]) -> list[int]:
    """Return the nodes in reading order of a tree: each followed by the functions it calls, longest call first."""
    calls: dict[int, list[int]] = {}
    for number, node in enumerate(samples.nodes):
        calls.setdefault(node.parent, []).append(number)
    order, left = [], [-1]
    while left:
        number = left.pop()
        order.append(number)
        left += sorted(calls.get(number, []), key=lambda call: (totals[call], -call))
    return order[1:]


def _phases(samples: HostSamples) -> tuple[list[Phase], list[int]]:
    """Return the phase of each node, and its samples including those of its callees."""
    nodes = samples.nodes
    begins = [_begins(*frame) for frame in samples.frames]
    phases: list[Phase] = []
    for node in nodes:
        around = phases[node.parent] if node.parent >= 0 else Phase.OTHER
        phases.append(_within(around, begins[node.frame], *samples.frames[node.frame]))
    totals = [node.own for node in nodes]
    called: list[dict[Phase, int]] = [{} for _ in nodes]
    for number in range(len(nodes) - 1, -1, -1):  # callees before their callers
        if phases[number] is Phase.OTHER:
            phases[number] = _single(called[number])
        parent = nodes[number].parent
        if parent >= 0:
            totals[parent] += totals[number]
            called[parent][phases[number]] = called[parent].get(phases[number], 0) + totals[number]
    return phases, totals


def _begins(file: str, function: str) -> Phase | None:
    """Return the phase that a call of this function begins, wherever it is made; None for most functions."""
    name = function.rpartition(".")[2]
    for phase, package, functions in _CALLS:
        if (functions is None or name in functions) and in_package(file, package):
            return phase
    return Phase.BACKWARD if name == "backward" and is_library(file) else None


def _within(around: Phase, begins: Phase | None, file: str, function: str) -> Phase:
    """Return the phase of a function, from its caller's phase and the phase that it would begin."""
    if around is Phase.DATA:
        return around
    if around is Phase.BACKWARD:  # a checkpoint's forward is part of it, but not an optimizer in a gradient hook
        return Phase.OPTIMIZER if begins is Phase.OPTIMIZER else around
    if around is Phase.OPTIMIZER:  # trainers run the whole step in the closure that they pass to it
        if begins is Phase.BACKWARD or (begins is Phase.FORWARD and in_package(file, _MODULE)):
            return begins
        return Phase.OTHER if "closure" in function.lower() else around
    return begins or around


def _single(called: dict[Phase, int]) -> Phase:
    """Return the phase of nearly all calls of a line, else OTHER."""
    phase = max(called, key=lambda phase: called[phase], default=Phase.OTHER)
    return phase if called and called[phase] >= SINGLE * sum(called.values()) else Phase.OTHER
