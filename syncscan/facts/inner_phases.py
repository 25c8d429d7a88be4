"""Find the phases inside each step by the sampled functions' names: a generation, a rollout.

What is between the steps is `program_phases`' matter. A function that the whole step is in says nothing of a part, and
neither does one that a network calls. (Validations aren't looked for: what is named so in each step, as a policy's
`evaluate_actions`, is part of training.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath

from syncscan.model.finding import Phase
from syncscan.model.host import HostNode, SampledHost
from syncscan.model.libraries import in_package
from syncscan.model.program_run import PhaseKind, kind_named

KINDS = (PhaseKind.GENERATION, PhaseKind.ROLLOUT)
"""Kinds that are looked for; loaders, logs and checkpoints are habits of their own."""
WORTH, WHOLE = 0.1, 0.95
"""The least part of the step that is worth naming, and the part from which on it is the step itself."""
_MODULE = "torch/nn/modules/module.py"


def inner_phases(sampled: SampledHost | None) -> list[tuple[PhaseKind, float, str]]:
    """Return each phase's kind, its share of the step (0 to 1), and the line that calls its costliest function.

    The longest comes first; a line is `train.py:31`.
    """
    if sampled is None or not sampled.step_us:
        return []
    nodes = sampled.nodes
    with_network, trains = (
        _callers_of(nodes, _calls_module),
        _callers_of(nodes, lambda node: node.phase in (Phase.BACKWARD, Phase.OPTIMIZER)),
    )
    covered = [False] * len(nodes)
    calls: dict[PhaseKind, list[HostNode]] = {}
    for at, node in enumerate(nodes):
        covered[at] = node.parent >= 0 and covered[node.parent]
        covered[at] |= _calls_module(node)
        if covered[at] or trains[at] or node.us >= WHOLE * sampled.step_us:
            continue
        kind = kind_named(node.function, node.file)
        if kind in KINDS and (with_network[at] or kind is PhaseKind.ROLLOUT):
            covered[at] = True
            calls.setdefault(kind, []).append(node)
    phases = [_phase(kind, each, sampled) for kind, each in calls.items()]
    return sorted((phase for phase in phases if WORTH <= phase[1] < WHOLE), key=lambda phase: -phase[1])


def _callers_of(nodes: Sequence[HostNode], condition: Callable[[HostNode], bool]) -> list[bool]:
    """Return of each node whether the condition holds of it or of anything that it calls."""
    holds = list(map(condition, nodes))
    for at in range(len(nodes) - 1, -1, -1):  # callees before their callers
        if holds[at] and nodes[at].parent >= 0:
            holds[nodes[at].parent] = True
    return holds


def _calls_module(node: HostNode) -> bool:
    return in_package(node.file, _MODULE)


def _phase(kind: PhaseKind, calls: Sequence[HostNode], sampled: SampledHost) -> tuple[PhaseKind, float, str]:
    longest = max(calls, key=lambda node: node.us)
    caller = sampled.nodes[longest.parent] if longest.parent >= 0 else longest
    name = PurePath(caller.file.replace(chr(92), "/")).name
    return kind, sum(node.us for node in calls) / sampled.step_us, f"{name}:{caller.line}"
