"""Facts about what the samples of a step's thread tell: logging, progress bars, tokenizing, collating, each once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from syncscan import habits
from syncscan.habits.rules.sampled_work import PLACES, WorkKind, kinds
from syncscan.model.finding import Phase
from syncscan.model.habit import Basis, Severity
from syncscan.model.host import USER, HostNode, SampledHost
from syncscan.model.step import NOT_MEASURED, Bound
from tests.builder import TraceBuilder
from tests.each import each

SITE = "/opt/env/lib/python3.11/site-packages/"
STEP_US = 1000.0


def tree(*nodes, samples=1000):
    """Nodes as (depth, owner, file, function, own µs), each below the last one of a lower depth."""
    built, last = [], {}
    for depth, owner, file, function, self_count in nodes:
        place = file if owner == USER else f"/usr/lib/python3.11/{file}" if owner == "python" else SITE + file
        last[depth] = len(built)
        parent = last[depth - 1] if depth else -1
        common = {"owner": owner, "phase": Phase.OTHER, "us": self_count, "self_us": self_count}
        built.append(HostNode(parent=parent, function=function, file=place, line=7, **common))
    return SampledHost(step_us=STEP_US, steps=50, samples=samples, overhead=0.0, nodes=tuple(built))


def spent_us(sampled, kind):
    return sum(node.self_us for node, of in zip(sampled.nodes, kinds(sampled.nodes), strict=True) if of is kind)


MAIN = (0, USER, "/home/me/train.py", "main", 100.0)
BAR = (1, "tqdm", "tqdm/std.py", "tqdm.update", 200.0)


def found(sampled, bound=Bound.HOST, busy=300.0):
    t = TraceBuilder()
    for start in t.steps(2, lasts=STEP_US):
        t.launch("k", at=start + 5, lasts=300)
    step = replace(NOT_MEASURED, observed_us=STEP_US, unprofiled_us=STEP_US, device_busy_us=busy, bound=bound)
    known, warnings = habits.find(t.trace(), (), step, sampled)
    assert warnings == ()
    assert {h.rule for h in known} <= {"side-work", "loader-no-workers", "first-touch", "lock-held"}
    return {h.title.partition("thread ")[2] if h.rule == "side-work" else h.rule: h for h in known}


@each(
    ("does", "node"),
    [
        ("draws a progress bar", BAR),
        (
            "draws a progress bar",
            (1, "lightning", "lightning/pytorch/callbacks/progress/tqdm_progress.py", "on_batch", 200.0),
        ),
        ("draws a progress bar", (1, "rich", "rich/progress.py", "Progress.update", 200.0)),
        ("logs", (1, "python", "logging/__init__.py", "Logger.info", 200.0)),
        ("logs", (1, "torch", "torch/utils/tensorboard/writer.py", "SummaryWriter.add_scalar", 200.0)),
        ("logs", (1, "wandb", "wandb/sdk/wandb_run.py", "Run.log", 200.0)),
        ("tokenizes texts", (1, "transformers", "transformers/tokenization_utils_base.py", "__call__", 200.0)),
        ("collates batches", (1, USER, "/home/me/data.py", "my_collate_fn", 200.0)),
        ("collates batches", (1, "torch", "torch/utils/data/_utils/collate.py", "default_collate", 200.0)),
    ],
)
def test_each_is_recognized_by_its_functions(does, node):
    """200 of 1,000 µs; in a step that its host bounds half of it is gained for sure, as far as samples tell."""
    habit = found(tree(MAIN, node))[does]
    assert habit.cost_us == 200.0
    assert habit.basis is Basis.SAMPLES
    assert habit.recoverable_us == 200.0
    assert habit.recoverable_range_us == pytest.approx((86, 228), abs=1)
    assert habit.severity is Severity.HIGH
    assert habit.evidence[0] == ("200 µs of the step's thread (20% of the step), by 200 samples without the profiler")


def test_the_evidence_names_the_line():
    """It is the line of the function in which it begins."""
    assert found(tree(MAIN, BAR))["draws a progress bar"].evidence[1] == "in std.py:7 tqdm.update"


@pytest.mark.parametrize("bound", [b for b in Bound if b is not Bound.HOST])
def test_where_the_host_does_not_bound_the_step_it_is_an_upper_bound(bound):
    """The device may work meanwhile."""
    habit = found(tree(MAIN, BAR), bound)["draws a progress bar"]
    assert (habit.basis, habit.recoverable_range_us) == (Basis.UPPER_BOUND, (0.0, 200.0))


def test_no_step_gets_shorter_than_its_device_works():
    """950 of 1,000 µs."""
    habit = found(tree(MAIN, BAR), busy=950.0)["draws a progress bar"]
    assert (habit.recoverable_us, habit.recoverable_range_us) == (50.0, (50.0, 50.0))


@each(
    "sampled",
    [
        None,
        tree(MAIN),
        tree(MAIN, (1, "tqdm", "tqdm/std.py", "tqdm.update", 9.0), samples=100_000),
        tree(MAIN, BAR, samples=90),
        tree(MAIN, (1, USER, "/home/me/logging/train.py", "log", 200.0)),
        tree(MAIN, (1, USER, "/home/me/tqdm_like.py", "update", 200.0)),
        tree(MAIN, (1, "tqdm_extra", "tqdm_extra/std.py", "update", 200.0)),
        tree(MAIN, (1, USER, "/home/me/data.py", "recollated", 200.0)),
    ],
    ids=[
        "not sampled",
        "none",
        "less than 1 %",
        "few samples",
        "the program's own folder",
        "a file",
        "a package of a longer name",
        "a function of a longer name",
    ],
)
def test_nothing_is_reported_of_what_is_not_known_to_cost(sampled):
    """Packages are told folder by folder, functions by their whole name."""
    assert found(sampled) == {}


def test_a_bar_is_not_charged_with_what_it_goes_through():
    """`for batch in tqdm(loader)`: the loader's own, a library's and the program's generators lie below it."""
    sampled = tree(
        MAIN,
        (1, "tqdm", "tqdm/std.py", "tqdm.__iter__", 50.0),
        (2, "python", "threading.py", "RLock.acquire", 10.0),
        (2, "torch", "torch/utils/data/dataloader.py", "__next__", 300.0),
        (2, "accelerate", "accelerate/data_loader.py", "__iter__", 100.0),
        (2, USER, "/home/me/data.py", "batches", 200.0),
    )
    assert spent_us(sampled, WorkKind.PROGRESS) == 60.0


def test_each_time_is_charged_once():
    """To the outermost: a tokenizer that a collate function calls is collating, a bar's logger is the bar."""
    sampled = tree(
        MAIN,
        (1, USER, "/home/me/data.py", "Batches.collate", 50.0),
        (2, "transformers", "transformers/tokenization_utils_base.py", "__call__", 100.0),
        (2, "torch", "torch/functional.py", "stack", 25.0),
        (1, "tqdm", "tqdm/std.py", "tqdm.update", 40.0),
        (2, "python", "logging/__init__.py", "Logger.debug", 30.0),
        (1, "transformers", "transformers/tokenization_utils_base.py", "pad", 60.0),
    )
    spent = {kind: spent_us(sampled, kind) for kind in WorkKind}
    assert spent == {
        WorkKind.LOADING: 0.0,
        WorkKind.PROGRESS: 70.0,
        WorkKind.LOGGING: 0.0,
        WorkKind.TOKENIZING: 60.0,
        WorkKind.COLLATING: 175.0,
    }


def test_what_a_loader_without_workers_does_is_that_habit_s():
    """It collates and tokenizes on the step's thread: workers are what helps."""
    sampled = tree(
        MAIN,
        (1, "torch", "torch/utils/data/dataloader.py", "_SingleProcessDataLoaderIter._next_data", 10.0),
        (2, "torch", "torch/utils/data/_utils/fetch.py", "fetch", 10.0),
        (3, USER, "/home/me/data.py", "collate_fn", 100.0),
        (4, "transformers", "transformers/tokenization_utils_base.py", "__call__", 100.0),
        (4, "tqdm", "tqdm/std.py", "tqdm.update", 100.0),
    )
    assert found(sampled) == {}
    assert spent_us(sampled, WorkKind.LOADING) == 320.0


def test_the_places_are_packages_folders_and_files():
    """Without a dot but a file's, and none twice."""
    places = [place for kind in PLACES.values() for place in kind]
    assert len(set(places)) == len(places)
    assert all("." not in place.removesuffix(".py") and not place.endswith("/") for place in places)
