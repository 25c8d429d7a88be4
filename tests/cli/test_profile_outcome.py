"""How the captures of several processes are joined, and which sentences explain a run without a trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.capture.plan import Demand, Plan
from syncscan.capture.script_capture import ScriptRun
from syncscan.cli import profile_outcome

LAUNCHER = ScriptRun(3, (), 0, "", False, False)


def process(rank: int, *, ended_early: bool = False, failed: str | None = None) -> ScriptRun:
    return ScriptRun(
        exit_code=0,
        pid=rank,
        rank=rank,
        world=2,
        paths=(Path(f"r{rank}.json"),),
        steps=8,
        marked_by="SGD.step()",
        complete=not ended_early,
        failed=failed,
        stopped=not ended_early,
    )


def test_a_run_without_processes_stays_as_it_is() -> None:
    """A launcher whose processes captured nothing keeps its exit code."""
    assert profile_outcome.of_processes(LAUNCHER, []) == LAUNCHER


def test_the_first_rank_s_trace_is_the_one_that_is_reported() -> None:
    """The last path is the one that `profile` reports: that of the first process."""
    joined = profile_outcome.of_processes(LAUNCHER, [process(0), process(1)])
    assert (joined.paths, joined.ranks, joined.exit_code) == ((Path("r1.json"), Path("r0.json")), 2, 0)


def test_one_incomplete_process_makes_the_run_incomplete() -> None:
    """A rank that ended early leaves the launcher's exit code, and its failure is the run's."""
    joined = profile_outcome.of_processes(LAUNCHER, [process(0), process(1, ended_early=True, failed="full")])
    assert (joined.complete, joined.stopped, joined.failed, joined.exit_code) == (False, False, "full", 3)


def test_a_run_that_is_too_short_names_the_steps_that_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    """The first step shows where steps end, so one more than the plan's is needed."""
    plan = Plan(wait=0, warmup=1, active=1, repeat=1, calibrate=0)
    profile_outcome.explain(ScriptRun(0, (), 1, "SGD.step()", False, False), plan, Demand())
    assert (
        f"ended after 1 step (SGD.step()), before the first recorded step: {plan.steps + 1} are needed"
        in capsys.readouterr().err
    )
