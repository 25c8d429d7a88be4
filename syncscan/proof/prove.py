"""Prove a change: compare what two programs compute, and then how long they take."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path

from msgspec.structs import replace

from syncscan.errors import ProgramFailed, UsageError
from syncscan.model.projection import Projection
from syncscan.proof import estimate, sameness
from syncscan.proof.command_trial import TURN_S, CommandOptions, CommandTrials
from syncscan.proof.compared_program import ComparedProgram, at_revision, program
from syncscan.proof.outcome import Fingerprint, Measured, Proof, ProofGain, ProofVerdict, Result, Same, Side
from syncscan.proof.paired_timing import (
    LIMIT_S,
    MATTERS,
    SEEDED,
    Opens,
    PairedTiming,
    ProofOptions,
    Run,
    Timed,
    running,
)
from syncscan.proof.running_process import ShellCommand
from syncscan.proof.trial import Trials
from syncscan.scratch import KERNEL, kind_here

CPU = "CPU, "
"""Prefix of the name of a CPU, which copies nothing later (`proof.trial_process.device_name`)."""


def prove(
    before: str,
    after: str | None = None,
    *,
    arguments: Sequence[str] = (),
    revisions: Sequence[str] = (),
    limit_s: float = LIMIT_S,
    matters: float = MATTERS,
    steps: int = SEEDED,
    tolerance: float = sameness.TOLERANCE,
    apart: bool = False,
    in_place: bool = False,
    patched: Sequence[tuple[Path, Path]] = (),
    projected: Projection | None = None,
    progress: Callable[[str], None] | None = None,
) -> Proof:
    """Measure whether a change is a real gain, and whether the program still computes the same.

    Both run in fresh processes, in turn, without a profiler. A step of a script ends where an optimizer's `step`
    returns or where the script calls `prof.step()` of `syncscan.profile`; of a function each call is one, or each call
    of the function that it returns. Each process writes into a scratch copy of the user's files, so that all begin from
    the same state, and none of it remains.

    Args:
        before: a script, or `file.py:function`.
        after: what it is compared with; with `revisions` the same program if not given.
        arguments: the arguments of the scripts.
        revisions: git revisions at which `before` and `after` run; with one, `after` runs as it is in the folder.
        limit_s: how long all may take.
        matters: the part of a step below which a difference doesn't matter.
        steps: how many seeded steps are compared.
        tolerance: how far losses may lie apart, as a part of the largest.
        apart: run the two processes of a pair one after the other, not both at a time.
        in_place: let the programs write into the user's files instead.
        patched: files, each with one that has its text in the scratch copy of `after`.
        projected: what was projected for the change, to be shown beside it.
        progress: called with a sentence now and then.

    Raises:
        UsageError: the program or revision doesn't exist, or a number is out of range.
        ProgramFailed: a program failed, or makes no steps.
    """
    _possible(limit_s, matters, steps, tolerance)
    options = ProofOptions(limit_s, matters, steps, tolerance, apart, progress or (lambda sentence: None))
    with _programs(before, after, arguments, revisions) as programs, Trials(programs, limit_s, in_place) as trials:
        if patched:
            of = programs[Side.AFTER]
            programs[Side.AFTER] = changed(of, name=f"{of.name}, patched", patched=tuple(patched))
        names = programs[Side.BEFORE].name, programs[Side.AFTER].name
        return measured(trials, names, options, projected)


def prove_commands(
    commands: Mapping[Side, ShellCommand],
    of: CommandOptions,
    *,
    limit_s: float = LIMIT_S,
    matters: float = MATTERS,
    apart: bool = False,
    in_place: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Proof:
    """Measure whether the second of two commands has the better number, in turns of about a second.

    Args:
        commands: what is compared, each with all that it starts.
        of: where their number is, and which is better.
        limit_s: how long all may take.
        matters: the part of the number below which a difference doesn't matter.
        apart: run them one after the other, not both at a time.
        in_place: let them write into the user's files, instead of a scratch view.
        progress: called with a sentence now and then.

    Raises:
        UsageError: a number is out of range, or this system has no scratch view for commands.
        ProgramFailed: a command failed, or prints no number.
    """
    _possible(limit_s, matters, 1, 0)
    if not in_place and kind_here() != KERNEL:
        raise UsageError(
            "Commands can't write into a scratch copy here, as the system refuses a mount namespace.",
            "With --in-place they run as they do by hand, and write into your files.",
        )
    began, names = time.monotonic(), (commands[Side.BEFORE].name, commands[Side.AFTER].name)
    with CommandTrials(commands, of, limit_s, in_place) as trials:
        try:
            result = trials.tried()
        except TimeoutError:
            why = f"{names[0]} and {names[1]} hadn't ended after {limit_s:g} s, nor printed enough numbers."
            raise ProgramFailed(why, "Give them more time with --limit.") from None
        options = ProofOptions(
            limit_s,
            matters,
            apart=apart or trials.whole,
            progress=progress or (lambda sentence: None),
            higher=of.higher,
            turn_s=TURN_S,
            fewest=1,
        )
        proof = _timed(trials, names, result, options, began)
    if of.metric is None:
        return replace(proof, measured=Measured.RUN)
    return replace(proof, measured=Measured.PRINTED, metric=of.metric.text)


def _possible(limit_s: float, matters: float, steps: int, tolerance: float) -> None:
    if os.name != "posix":
        raise UsageError("Programs can be compared on Linux and macOS only.")
    for name, value, low in (
        ("limit", limit_s, 1.0),
        ("steps", steps, 1),
        ("matters", matters, 0),
        ("tolerance", tolerance, 0),
    ):
        if not (low <= value < math.inf):
            raise UsageError(f"{name} is {value:g}, but must be at least {low:g}.")


@contextlib.contextmanager
def _programs(
    before: str, after: str | None, arguments: Sequence[str], revisions: Sequence[str]
) -> Iterator[dict[Side, ComparedProgram]]:
    if after is None and not revisions:
        raise UsageError("Two programs are needed.", "Give two scripts, two functions, or one with --rev A --rev B.")
    if len(revisions) > 2:
        raise UsageError(f"{len(revisions)} revisions were given, but only two can be compared.")
    first, second = program(before, arguments), program(after or before, arguments)
    if bool(first.function) != bool(second.function):
        raise UsageError(f"{before} and {after} are a script and a function.", "Give two scripts, or two functions.")
    with contextlib.ExitStack() as worktrees:
        checked_out = [
            worktrees.enter_context(at_revision(path, revision))
            for path, revision in zip((first, second), revisions, strict=False)
        ]
        path, other = [*checked_out, *(first, second)[len(checked_out) :]]
        yield {Side.BEFORE: path, Side.AFTER: other}


def measured(
    trials: Trials,
    names: tuple[str, str],
    options: ProofOptions,
    projected: Projection | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Proof:
    """Compare what two programs compute, then how long they take."""
    began = clock()
    try:
        result, device = _compare(trials, options)
    except TimeoutError:
        why = f"{names[0]} and {names[1]} hadn't finished {options.steps} steps each after {options.limit_s:g} s."
        raise ProgramFailed(why, "Give them more time with --limit.") from None
    options.progress(f"result after {result.steps} seeded steps: {result.same.value}")
    return replace(_timed(trials, names, result, options, began, clock), device=device, projected=projected)


def _timed(
    trials: Opens[Timed],
    names: tuple[str, str],
    result: Result,
    options: ProofOptions,
    began: float,
    clock: Callable[[], float] = time.monotonic,
) -> Proof:
    """Measure pairs from now on; `began` is when all began."""
    course = PairedTiming(trials, options, clock, began + options.limit_s)
    course.run()
    gain = estimate.gain_of(course.pairs, higher=options.higher)
    return Proof(
        before=names[0],
        after=names[1],
        device="",
        verdict=verdict(gain, options.matters, result.same),
        gain=gain,
        matters=options.matters,
        pairs=tuple(course.pairs),
        result=result,
        steps=course.steps,
        clock=course.clock,
        together=not course.apart,
        seconds=clock() - began,
        stopped=course.stopped,
        notes=tuple(course.notes),
        higher=options.higher,
    )


def verdict(gain: ProofGain | None, matters: float, same: Same) -> ProofVerdict:
    if same is Same.NO:
        return ProofVerdict.DIFFERENT
    if gain is None:
        return ProofVerdict.UNKNOWN
    if gain.high < -matters:
        return ProofVerdict.SLOWER
    if gain.high <= matters:
        return ProofVerdict.NO_GAIN
    return ProofVerdict.PROVEN if gain.low > matters and same is not Same.UNKNOWN else ProofVerdict.UNKNOWN


def _compare(trials: Trials, options: ProofOptions) -> tuple[Result, str]:
    """Return whether both compute the same; if not bit for bit, the first one is run again twice."""
    (first, device), (other, _) = _fingerprints(trials, (Run(Side.BEFORE), Run(Side.AFTER)), options)
    noise = _Noise(trials, options)
    if first == other:
        result = sameness.judge(first, other, tolerance=options.tolerance)
    else:
        result = sameness.judge(first, other, *noise.runs(), options.tolerance)
    if result.same is not Same.YES or device.startswith(CPU):
        return result, device
    ((delayed, _),) = _fingerprints(trials, (Run(Side.AFTER, delayed=True),), options)
    if delayed == other:
        return result, device
    return sameness.by_timing(result, sameness.judge(first, delayed, *noise.runs(), options.tolerance)), device


class _Noise:
    """Runs of the first program that show how far it lies from itself, made once and where they are needed."""

    def __init__(self, trials: Trials, options: ProofOptions) -> None:
        self._trials, self._options = trials, options
        self._made: list[Fingerprint] = []

    def runs(self) -> tuple[Fingerprint, Fingerprint]:
        if not self._made:
            runs = (Run(Side.BEFORE), Run(Side.BEFORE, rounded=True))
            self._made = [taken for taken, _ in _fingerprints(self._trials, runs, self._options)]
        again, rounded = self._made
        return again, rounded


def _fingerprints(trials: Trials, runs: Sequence[Run], options: ProofOptions) -> list[tuple[Fingerprint, str]]:
    """Return the fingerprints of some runs, made in parallel unless that is excluded or fails."""
    if not options.apart:
        with contextlib.suppress(ProgramFailed):
            return _at_once(trials, runs, options.steps)
    return [fingerprint for run in runs for fingerprint in _at_once(trials, (run,), options.steps)]


def _at_once(trials: Trials, runs: Sequence[Run], steps: int) -> list[tuple[Fingerprint, str]]:
    with running(trials, runs, seeded=steps) as opened:
        return [trial.fingerprint() for trial in opened]
