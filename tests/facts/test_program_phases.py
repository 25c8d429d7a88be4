"""Samples of a run give its phases: work outside of the loop of runs the steps, and work in few of the steps."""

from __future__ import annotations

import linecache
from types import CodeType

import pytest

from syncscan.capture.run_watch import window
from syncscan.facts.program_phases import Sample, SeenPhase, WatchedSteps, phases_of, rounds_of
from syncscan.model.program_run import PhaseKind
from syncscan.source.loops import LoopLines, Loops

SOURCE = """\
def train():
    for iteration in range(9):
        for number in range(64):
            act(number)
        for epoch in range(2):
            for batch in range(8):
                forward(batch)
                if batch % 100 == 0:
                    evaluate()
                step()
        save_checkpoint()
def forward(batch):
    pass
def evaluate():
    pass
def save_checkpoint():
    pass
def act(number):
    for part in number:
        part()
"""
FILE = "/home/me/train.py"
MS = 1_000_000


def code(name: str) -> CodeType:
    return next(c for c in compile(SOURCE, FILE, "exec").co_consts if isinstance(c, CodeType) and c.co_name == name)


CODES = {name: code(name) for name in ("train", "forward", "evaluate", "save_checkpoint", "act")}


def stack(*frames: tuple[str, int]) -> tuple[tuple[CodeType, int], ...]:
    return tuple((CODES[name], line) for name, line in frames)


STEP, FORWARD = stack(("train", 10)), stack(("train", 7), ("forward", 13))
ROLLOUT = stack(("train", 4), ("act", 20))
EVALUATION = stack(("train", 9), ("evaluate", 15))
CHECKPOINT = stack(("train", 11), ("save_checkpoint", 17))


def seen(rounds: int, *, every: int, between: tuple[tuple[tuple[CodeType, int], ...], int]) -> list[SeenPhase]:
    """The phases of a run whose steps take 10 ms, sampled each ms; before each `every`-th comes something else."""
    linecache.cache[FILE] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), FILE)
    at, ends, samples = 0, [0], []
    for number in range(rounds):
        if number % every == every - 1:
            samples += [Sample(at + k * MS, MS, between[0]) for k in range(1, between[1])]
            at += between[1] * MS
        samples += [Sample(at + k * MS, MS, FORWARD if k < 8 else STEP) for k in range(1, 10)]
        at += 10 * MS
        ends.append(at)
    return phases_of(WatchedSteps(ends, [True] * rounds, STEP), samples, Loops())[0]


def test_a_loop_beside_the_steps_loop_is_a_phase() -> None:
    """The rollout, with its lines and all of its time."""
    (phase,) = seen(64, every=8, between=(ROLLOUT, 50))
    assert (phase.place.first, phase.place.last) == (3, 4)
    assert phase.ns == 8 * 49 * MS


def test_a_phase_s_rounds_are_those_of_its_outermost_loop() -> None:
    """Not of the loop in what it calls, nor of the one around it and the steps."""
    (phase,) = seen(64, every=8, between=(ROLLOUT, 50))
    assert rounds_of(phase, Loops()) == (CODES["train"], LoopLines(3, 4, 4))


def test_what_only_few_rounds_come_to_is_a_phase_by_its_function_s_name() -> None:
    """The evaluation each 16 batches, in the loop of the steps; what is in each round is none."""
    (phase,) = seen(64, every=16, between=(EVALUATION, 30))
    assert (phase.kind, phase.name) == (PhaseKind.VALIDATION, "validation")


def test_a_statement_behind_the_steps_loop_is_a_phase_without_rounds() -> None:
    """A checkpoint is recorded whole."""
    (phase,) = seen(64, every=16, between=(CHECKPOINT, 20))
    assert phase.kind is PhaseKind.CHECKPOINT
    assert rounds_of(phase, Loops()) is None


def test_a_step_that_now_and_then_is_longer_is_no_phase() -> None:
    """One set of lines took longer: a pause of the system, or a loader that isn't ready."""
    assert seen(64, every=16, between=(FORWARD, 30)) == []


def test_shares_are_taken_of_whole_cycles_of_the_longest_stretch() -> None:
    """Cycles go from one occurrence of a phase to the next; with too few of them, shares are of the whole run."""
    counts = [False] * 3 + [True] * 3 + [False] * 4 + [True] * 40
    assert window(counts, [10] * 50, [[15, 31, 47]]) == (15, 47)
    assert window(counts, [10] * 50, [[15]]) == (10, 50)


PREDICTING = """\
def fit():
    for batch in range(9):
        step()
        if batch % 3 == 0:
            score()
            look(batch)
def score():
    model.eval()
    result = model(1)
    model.train()
    return result
def look(batch):
    with torch.no_grad():
        plot(model(batch))
def keep():
    average(weights)
"""
_NETWORK = compile("def __call__(): ...", "/lib/site-packages/torch/nn/modules/module.py", "exec").co_consts[0]


_FIT = "/home/me/fit.py"
_CODES = {c.co_name: c for c in compile(PREDICTING, _FIT, "exec").co_consts if isinstance(c, CodeType)}


def predicted(*frames: tuple[str, int]) -> tuple[tuple[CodeType, int], ...]:
    linecache.cache[_FIT] = (len(PREDICTING), None, PREDICTING.splitlines(keepends=True), _FIT)
    return tuple((_CODES[name], line) for name, line in frames)


@pytest.mark.parametrize(
    ("frames", "kind"),
    [
        ((("fit", 5), ("score", 9)), PhaseKind.VALIDATION),
        ((("fit", 6), ("look", 14)), PhaseKind.VALIDATION),
        ((("fit", 5), ("score", 11)), PhaseKind.OTHER),
        ((("fit", 6), ("keep", 16)), PhaseKind.OTHER),
    ],
)
def test_a_network_s_calls_that_train_nothing_are_a_validation(
    frames: tuple[tuple[str, int], ...], kind: PhaseKind
) -> None:
    """Behind `eval()`, or without gradients, whatever the function is called; and one line is one phase."""
    ours, step = predicted(*frames), predicted(("fit", 3))
    stacks = ((*ours, (_NETWORK, 1)), (*ours, (_NETWORK, 1)), (ours[0], *predicted(("keep", 16))))
    at, ends, samples = 0, [0], []
    for number in range(40):
        if number % 10 == 9:
            samples += [Sample(at + k * MS, MS, stacks[k % 3]) for k in range(1, 30)]
            at += 30 * MS
        samples += [Sample(at + k * MS, MS, step) for k in range(1, 10)]
        at += 10 * MS
        ends.append(at)
    phases, _ = phases_of(WatchedSteps(ends, [True] * 40, step), samples, Loops())
    assert [(phase.kind, phase.place.first) for phase in phases] == [(kind, frames[0][1])]
