"""From the sampled tree of a step's thread to what it spends on logging, progress bars, tokenising and collating.

Each function counts once, for the outermost of these that it works for: a tokeniser that a collate function calls is
collating. What a DataLoader without workers does is that one's habit, and none of these.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec
from msgspec.structs import replace

from syncscan.habits.context import Context
from syncscan.model.habit import Advice, Basis, Habit, HabitGain
from syncscan.model.host import USER, HostNode, SampledHost
from syncscan.model.libraries import in_package
from syncscan.model.step import Bound
from syncscan.model.units import duration


class Kind(enum.Enum):
    """What a function works for."""

    LOGGING = enum.auto()
    PROGRESS = enum.auto()
    TOKENISING = enum.auto()
    COLLATING = enum.auto()
    LOADING = enum.auto()


PLACES = {
    Kind.LOADING: ("torch/utils/data/dataloader.py", "torch/utils/data/_utils/fetch.py"),
    Kind.PROGRESS: tuple(
        """
        tqdm rich/progress.py rich/live.py alive_progress progressbar fastprogress
        lightning/pytorch/callbacks/progress pytorch_lightning/callbacks/progress
        """.split()
    ),
    Kind.LOGGING: tuple(
        """
        logging loguru wandb mlflow tensorboard tensorboardX torch/utils/tensorboard comet_ml neptune clearml aim
        trackio lightning/pytorch/loggers pytorch_lightning/loggers lightning/fabric/loggers
        lightning/pytorch/trainer/connectors/logger_connector pytorch_lightning/trainer/connectors/logger_connector
        """.split()
    ),
    Kind.TOKENISING: tuple(
        """
        tokenizers tiktoken sentencepiece torchtext/transforms.py open_clip/tokenizer.py
        transformers/tokenization_utils_base.py transformers/tokenization_utils.py
        transformers/tokenization_utils_fast.py transformers/tokenization_utils_tokenizers.py
        transformers/tokenization_utils_sentencepiece.py transformers/tokenization_python.py
        """.split()
    ),
    Kind.COLLATING: ("torch/utils/data/_utils/collate.py", "transformers/data/data_collator.py"),
}
"""The packages, folders and files of each kind."""
_COLLATES = re.compile(r"(\w+_)?collate(_\w+)?")
"""What programs call a function that makes a batch of samples."""
_HANDING_ON = (Kind.LOGGING, Kind.PROGRESS)
"""Kinds that hand on to others: `tqdm(loader)` calls the loader, a logger the program's own handler."""
_SERVING = frozenset(
    "python rich IPython ipykernel ipywidgets comm zmq jupyter_client traitlets psutil google requests urllib3 yaml "
    "numpy PIL".split()
)
"""Owners of what such a kind calls for itself: to show, to write, to send. What any other does below it isn't its."""
LEAST_SAMPLES = 20
"""Of fewer the time is uncertain by more than half of it."""
SURELY = 0.5
"""A step that its host bounds gets shorter by this part at least of what its thread spares. Not by all of it: the
device may have work for some of the time, and what takes a function's place takes some."""


class Spent(msgspec.Struct, frozen=True):
    """What a step's thread spends on one kind of work, by samples."""

    us: float
    samples: float
    places: tuple[HostNode, ...]
    """Where it begins, the longest first."""


def spent_on(sampled: SampledHost, kind: Kind) -> Spent:
    """What this kind of work takes of a step."""
    found = kinds(sampled.nodes)
    mine = [node for node, other in zip(sampled.nodes, found, strict=True) if other is kind]
    begins = [n for n, k in zip(sampled.nodes, found, strict=True) if k is kind and _of(found, n.parent) is not kind]
    us = sum(node.self_us for node in mine)
    samples = sampled.samples * us / sampled.step_us if sampled.step_us > 0 else 0.0
    return Spent(us, samples, tuple(sorted(begins, key=lambda node: -node.us)))


def sampled_habit(context: Context, advice: Advice, kind: Kind) -> Iterable[Habit]:
    """The habit that this kind of work is, where the samples tell that it takes a notable part of the step.

    Where in the trace it lies isn't known, so it can't be replayed. In a step that its host bounds what the thread
    spares is gained, but for what `SURELY` allows for; in any other it is an upper bound.
    """
    if context.sampled is None:
        return
    spent = spent_on(context.sampled, kind)
    if spent.samples < LEAST_SAMPLES or spent.us < context.notable_us:
        return
    sure = deviation(spent.samples)
    gain = gained(context, spent.us, SURELY * (1 - sure) * spent.us, (1 + sure) * spent.us)
    habit = context.habit(advice, [], spent.us, _evidence(context.sampled, spent))
    yield replace(habit, gain=gain, per_step=1.0)


def deviation(samples: float) -> float:
    """Within which part of it a time lies that so many samples tell: twice the deviation of their number."""
    return 2 / math.sqrt(samples)


def gained(context: Context, likely: float, low: float, high: float) -> HabitGain | None:
    """What a step gains that its host bounds if its thread spares so much, in µs: no more than the device leaves.

    None for any other step, where an upper bound is all that can be said.
    """
    if context.step.bound is not Bound.HOST:
        return None
    most = max(0.0, context.period_us - context.step.device_busy_us)
    return HabitGain(min(likely, most), (min(low, most), min(high, most)), Basis.SAMPLES)


def _evidence(sampled: SampledHost, spent: Spent) -> list[str]:
    places = dict.fromkeys(f"{PurePath(n.file.replace(chr(92), '/')).name}:{n.line} {n.function}" for n in spent.places)
    return [
        f"{duration(spent.us)} of the step's thread ({spent.us / sampled.step_us:.0%} of the step), by "
        f"{spent.samples:.0f} samples without the profiler",
        f"in {', '.join(list(places)[:3])}",
    ]


def kinds(nodes: Sequence[HostNode]) -> list[Kind | None]:
    """For each node what it works for: as its caller, unless that hands on; else by itself."""
    found: list[Kind | None] = []
    for node in nodes:
        caller, own = _of(found, node.parent), _kind(node)
        handed_on = caller in _HANDING_ON and own is not caller and node.owner not in _SERVING
        found.append(own if caller is None or handed_on else caller)
    return found


def _of(found: Sequence[Kind | None], place: int) -> Kind | None:
    return found[place] if 0 <= place < len(found) else None


def _kind(node: HostNode) -> Kind | None:
    for kind, places in PLACES.items():
        if node.owner != USER and any(in_package(node.file, place) for place in places):
            return kind
    return Kind.COLLATING if _COLLATES.fullmatch(node.function.rpartition(".")[2]) else None
