"""A sentence, a strip and JSON describe what the recorded steps represent in the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from syncscan import api
from syncscan.report import program_run, render
from syncscan.report.blocks import Grid
from tests.builder import TraceBuilder
from tests.host.test_sampled import BACKWARD, MODULE, table
from tests.host.test_sampled import MAIN as MAIN_LINE
from tests.model.test_program_run import PHASE, RUN
from tests.report.example import HOSTILE

MAIN = "train.1.pt.trace.json"


def written(folder: Path, name: str = MAIN, **stored: Any) -> Path:
    """A trace of three steps that each wait once, with what capture stored."""
    built = TraceBuilder(syncscan={"schema": "syncscan.capture/1", "unprofiled_step_us": 900.0, **stored})
    for start in built.steps(3, lasts=1000):
        with built.op("aten::item", start + 10, start + 400):
            built.launch("gemm", at=start + 12, lasts=100)
            built.sync("aten::_local_scalar_dense", at=start + 20, wait=300)
    path = folder / name
    path.write_bytes(built.json())
    return path


def phase(**more: Any) -> dict[str, Any]:
    return {**RUN, "phases": [{**PHASE, **more}]}


def words(report: str) -> str:
    return " ".join(report.replace("\\", "").replace("&#39;", "'").split())


def test_a_report_says_what_its_steps_stand_for(tmp_path: Path) -> None:
    """In every format that has words: shares on the first screen, the rest behind it; in JSON with the numbers."""
    analysis = api.analyze(written(tmp_path, run=phase()))
    text = "Steps like these 3 take 58% of the run's time"
    for form in ("text", "html", "markdown"):
        options = {} if form == "html" else {"verbose": True}
        assert "steps 58%, rollout 42% (ppo.py:3-9; not recorded)" in words(render(analysis, form))
        shown = words(render(analysis, form, **options))
        assert text in shown
        assert "rollout 42% (ppo.py:3-9, each 3.5 steps)" in shown
    run = json.loads(render(analysis, "json"))["run"]
    assert run["sentence"].startswith(text)
    assert (run["counted"], round(run["steps_share"], 3)) == (9, 0.583)
    saved = (analysis.step.recoverable_us or 0.0) / 900
    assert round(run["gain_share"], 6) == round(run["steps_share"] * saved, 6)


def test_a_phase_without_a_trace_comes_with_the_command_that_records_it(tmp_path: Path) -> None:
    """A capture that begins some steps before one in which the phase came, of the program as it was typed."""
    late = {"phases": [{**PHASE, "at": [3, 30]}]}
    analysis = api.analyze(written(tmp_path, run={**RUN, **late}))
    command = "`syncscan profile --start-at 22 --calibrate 0 --active 8 ppo.py --seed 1` records the rollout."
    assert program_run.sentence(analysis, ("ppo.py", "--seed", "1")).endswith(command)


def test_a_run_is_one_sentence(tmp_path: Path) -> None:
    """The text has no table of its phases; one is in JSON."""
    analysis = api.analyze(written(tmp_path, run=phase()))
    assert program_run.sentence(analysis).count(". ") == 0
    assert "Between the steps" not in render(analysis, "text", verbose=True)
    assert not any(isinstance(block, Grid) for block in program_run.blocks(analysis))


def test_timed_steps_that_are_not_like_the_run_s_are_called(tmp_path: Path) -> None:
    """900 µs were timed, and 15.6 are the mean of the run's."""
    assert "15.6 µs each on average (timed ones 900 µs);" in program_run.sentence(
        api.analyze(written(tmp_path, run=phase()))
    )


def test_a_phase_inside_each_step_is_named_without_a_watched_run(tmp_path: Path) -> None:
    """With its part of the step and the line that calls it, where a report says what its steps are of the run."""
    trainer = "/home/me/train.py:Trainer.step:31"
    generate = "/home/me/sample.py:generate:7"
    stacks = {(MAIN_LINE, trainer, generate, MODULE): 72, (MAIN_LINE, trainer, BACKWARD): 28}
    analysis = api.analyze(written(tmp_path, host=table(stacks=stacks)))
    sentence = "In each step, generation takes 72% (train.py:31)."
    assert program_run.sentence(analysis) == sentence
    assert sentence in render(analysis, "text", verbose=True)
    assert sentence in render(analysis, "html")


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """A phase's name is as hostile as a kernel's."""
    for name in HOSTILE:
        document = render(api.analyze(written(tmp_path, run=phase(name=name, file=name))), "html")
        assert "<script>alert" not in document


def test_a_trace_without_a_run_says_nothing_of_one(tmp_path: Path) -> None:
    """Captures before 0.2, and other people's traces."""
    analysis = api.analyze(written(tmp_path))
    assert program_run.sentence(analysis) == ""
    assert json.loads(render(analysis, "json"))["run"] is None
