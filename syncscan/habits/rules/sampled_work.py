"""Sum up what a step's thread spends on logging, progress bars, tokenizing and collating, by samples.

Each function counts once, for the outermost of these kinds: a tokenizer called by a collate function is collating. What
a DataLoader without workers does belongs to that habit, and counts as none of these.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.model.duration import duration
from syncscan.model.finding import Phase
from syncscan.model.habit import Basis, Habit, SampledTime
from syncscan.model.host import USER, HostNode
from syncscan.model.libraries import in_package
from syncscan.model.step import Bound


class WorkKind(enum.Enum):
    """Kinds of work that a function is for; the habit's page has texts by these names."""

    LOGGING = "logging"
    PROGRESS = "progress"
    TOKENIZING = "tokenizing"
    COLLATING = "collating"
    LOADING = "loading"


PLACES = {
    WorkKind.LOADING: ("torch/utils/data/dataloader.py", "torch/utils/data/_utils/fetch.py"),
    WorkKind.PROGRESS: tuple(
        """
        tqdm rich/progress.py rich/live.py alive_progress progressbar fastprogress
        lightning/pytorch/callbacks/progress pytorch_lightning/callbacks/progress
        """.split()
    ),
    WorkKind.LOGGING: tuple(
        """
        logging loguru wandb mlflow tensorboard tensorboardX torch/utils/tensorboard comet_ml neptune clearml aim
        trackio lightning/pytorch/loggers pytorch_lightning/loggers lightning/fabric/loggers
        lightning/pytorch/trainer/connectors/logger_connector pytorch_lightning/trainer/connectors/logger_connector
        """.split()
    ),
    WorkKind.TOKENIZING: tuple(
        """
        tokenizers tiktoken sentencepiece torchtext/transforms.py open_clip/tokenizer.py
        transformers/tokenization_utils_base.py transformers/tokenization_utils.py
        transformers/tokenization_utils_fast.py transformers/tokenization_utils_tokenizers.py
        transformers/tokenization_utils_sentencepiece.py transformers/tokenization_python.py
        """.split()
    ),
    WorkKind.COLLATING: ("torch/utils/data/_utils/collate.py", "transformers/data/data_collator.py"),
}
"""Packages, folders and files of each kind."""
ACTIVITIES = {
    WorkKind.PROGRESS: "draws a progress bar",
    WorkKind.LOGGING: "logs",
    WorkKind.TOKENIZING: "tokenizes texts",
    WorkKind.COLLATING: "collates a batch",
}
"""Work that is a habit, in words that follow "the thread"."""
_COLLATES = re.compile(r"(\w+_)?collate(_\w+)?")
"""Names of functions that make a batch of samples."""
_HANDING_ON = (WorkKind.LOGGING, WorkKind.PROGRESS)
"""Kinds that call other code: `tqdm(loader)` calls the loader, a logger calls the program's own handler."""
_SERVING = frozenset(
    "python rich IPython ipykernel ipywidgets comm zmq jupyter_client traitlets psutil google requests urllib3 yaml "
    "numpy PIL".split()
)
"""Owners of code that such a kind uses for itself, to show, write or send. Other owners below it don't count for it."""
LEAST_SAMPLES = 20
"""With fewer samples the time is uncertain by more than half."""
SURELY = 0.5
"""Least share of the time saved on the thread that shortens a host-bound step. Not all of it: the device may have work
for some of the time, and whatever replaces a function takes some."""


def side_work(context: Context) -> Iterable[Habit]:
    """Yield each kind of work that samples show to take a notable part of the step.

    Its place in the trace is unknown, so it can't be replayed. In a host-bound step, time saved on the thread is
    gained, up to the allowance of `SURELY`; in any other step it is an upper bound.
    """
    sampled = context.sampled
    if sampled is None or sampled.step_us <= 0:
        return
    known = kinds(sampled.nodes)
    for kind, activity in ACTIVITIES.items():
        own = [node for node, other in zip(sampled.nodes, known, strict=True) if other is kind]
        us = sum(node.self_us for node in own)
        samples = sampled.samples * us / sampled.step_us
        if samples < LEAST_SAMPLES or us < context.notable_us:
            continue
        begins = sorted((n for n in own if _of(known, n.parent) is not kind), key=lambda node: -node.us)
        evidence = [
            f"{duration(us)} of the step's thread ({us / sampled.step_us:.0%} of the step), by {samples:.0f} samples "
            "without the profiler",
            f"in {', '.join([*dict.fromkeys(f'{node.place} {node.function}' for node in begins)][:3])}",
        ]
        phases = by_phase((node.phase, node.self_us) for node in own)
        habit = context.habit("side-work", [], us, evidence, variant=kind.value)
        placed = replace(habit, per_step=1.0, sampled=SampledTime(activity, phases))
        sure = deviation(samples)
        yield gained(context, placed, us, SURELY * (1 - sure) * us, (1 + sure) * us)


def by_phase(times: Iterable[tuple[Phase, float]]) -> tuple[tuple[Phase, float], ...]:
    """Return the sum of these times of each phase, largest first, without phases that take none."""
    total: dict[Phase, float] = {}
    for phase, us in times:
        total[phase] = total.get(phase, 0.0) + us
    return tuple(sorted(((p, us) for p, us in total.items() if us > 0), key=lambda part: (-part[1], part[0].value)))


def deviation(samples: float) -> float:
    """Return the relative uncertainty of a time by this many samples: twice the deviation of their number."""
    return 2 / math.sqrt(samples)


def gained(context: Context, habit: Habit, likely: float, low: float, high: float) -> Habit:
    """Return it with the gain of a host-bound step if its thread saves this much, in µs, limited by the device's work.

    Any other step only has an upper bound.
    """
    if context.step.bound is not Bound.HOST:
        return habit
    most = max(0.0, context.period_us - context.step.device_busy_us)
    range_us = min(low, most), min(high, most)
    return habit.gaining(min(likely, most), range_us, Basis.SAMPLES, context.period_us)


def kinds(nodes: Sequence[HostNode]) -> list[WorkKind | None]:
    """Return each node's kind of work: its caller's, unless that calls other code; else its own."""
    work_kinds: list[WorkKind | None] = []
    for node in nodes:
        caller, own = _of(work_kinds, node.parent), _kind(node)
        handed_on = caller in _HANDING_ON and own is not caller and node.owner not in _SERVING
        work_kinds.append(own if caller is None or handed_on else caller)
    return work_kinds


def _of(known: Sequence[WorkKind | None], place: int) -> WorkKind | None:
    return known[place] if 0 <= place < len(known) else None


def _kind(node: HostNode) -> WorkKind | None:
    for kind, places in PLACES.items():
        if node.owner != USER and any(in_package(node.file, place) for place in places):
            return kind
    return WorkKind.COLLATING if _COLLATES.fullmatch(node.function.rpartition(".")[2]) else None
