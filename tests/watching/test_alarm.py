"""A line that waits for more than in its past is alarmed, once and soon, and runs a command; noise is not."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.watch_noise import alarms_of, load, steps_to_alarm
from syncscan.errors import UsageError
from syncscan.watching.alarm import AlarmCommand, Alarms, Usual
from tests.until import until
from tests.watching.example import ALARM

OLD, NEW = ("train.py", 5, "step"), ("train.py", 41, "step")
CHUNK = 23
"""Samples of a second."""


def chunk(draw: random.Random, shares: dict[tuple[str, int, str], float]) -> Counter[tuple[str, int, str]]:
    counts: Counter[tuple[str, int, str]] = Counter()
    for _ in range(CHUNK):
        at = draw.random()
        for key, share in shares.items():
            if at < share:
                counts[key] += 1
                break
            at -= share
    return counts


def test_a_new_wait_is_alarmed_within_seconds() -> None:
    """A sync of a tenth of the step that comes after 50 s is known within 20 s, and alarmed once."""
    draw, alarms = random.Random(1), Alarms()
    before = [alarms.add(CHUNK, chunk(draw, {OLD: 0.3})) for _ in range(50)]
    after = [alarms.add(CHUNK, chunk(draw, {OLD: 0.3, NEW: 0.1})) for _ in range(600)]
    when = [number for number, grown in enumerate(after) if grown]
    assert not any(before)
    assert len(when) == 1
    assert when[0] < 20
    key, before, now = after[when[0]][0]
    assert key == NEW
    assert before < 0.01
    assert 0.05 < now < 0.2


def test_a_wait_that_doubles_is_alarmed() -> None:
    """A rise from 20 % of the step to 40 %."""
    draw, alarms = random.Random(2), Alarms()
    assert not any(alarms.add(CHUNK, chunk(draw, {OLD: 0.2})) for _ in range(300))
    assert any(alarms.add(CHUNK, chunk(draw, {OLD: 0.4})) for _ in range(20))


@pytest.mark.slow
def test_a_day_of_unchanged_noise_alarms_nothing() -> None:
    """24 hours of seconds, three lines, whose shares differ from minute to minute by a tenth of them."""
    draw, alarms = random.Random(3), Alarms()
    lines = {OLD: 0.3, NEW: 0.02, ("train.py", 9, "step"): 0.1}
    grown = []
    for second in range(86_400):
        if second % 60 == 0:
            now = {key: share * draw.uniform(0.9, 1.1) for key, share in lines.items()}
        grown += alarms.add(CHUNK, chunk(draw, now))
    assert grown == []


def test_waits_in_clusters_vary_and_are_not_alarmed() -> None:
    """A line waits for half of the time, but for all or nothing of 2 s at a time: no growth in an hour."""
    draw, alarms = random.Random(3), Alarms()
    grown = []
    for _ in range(1800):
        waits = draw.random() < 0.5
        for _ in range(4):
            grown += alarms.add(11, {OLD: 11} if waits else {})
    assert len(grown) <= 1


def test_nothing_is_alarmed_before_there_is_a_past() -> None:
    """The first seconds are a program's start."""
    draw, alarms = random.Random(4), Alarms()
    assert not any(alarms.add(CHUNK, chunk(draw, {NEW: 0.9})) for _ in range(25))


def test_samples_between_steps_do_not_count() -> None:
    """A step that takes far longer than the others holds an evaluation, or a checkpoint."""
    usual = Usual()
    ends = [100 * number for number in range(1, 11)]
    count, waiting = usual.add([(end - 50, None, 1) for end in ends], ends)
    assert (count, waiting) == (0, Counter())  # their usual length isn't known yet
    count, waiting = usual.add([(1050, OLD, 2), (1800, NEW, 7), (2250, OLD, 1)], [1100, 2200, 2300])
    assert (count, waiting) == (3, Counter({OLD: 3}))


def test_a_sample_counts_when_its_step_has_ended() -> None:
    """It waits for the next time until then."""
    usual = Usual()
    usual.add([], [0, 100, 200, 300, 400])
    assert usual.add([(450, OLD, 1)], []) == (0, Counter())
    assert usual.add([], [500]) == (1, Counter({OLD: 1}))


NOISE = {"loader": 1e9, "rank0": 20.0, "rank1": 20.0, "generation": 1e9, "reinforcement": 1e9, "adversarial": 1e9}
"""Jobs recorded on an H100 by `benchmarks/watch_noise.py`, with the seconds in which nothing changed."""


@pytest.mark.parametrize(
    "job", [job if job == "loader" else pytest.param(job, marks=pytest.mark.slow) for job in NOISE]
)
def test_noise_of_real_jobs_alarms_nothing_and_a_new_wait_does(job: str) -> None:
    """An hour drawn from a recording; then a quarter of each step, from step 5,000 on, within 500 steps."""
    recorded = [one.until(NOISE[job]) for one in load(Path(__file__).parent / "noise" / f"{job}.json.gz")]
    assert alarms_of(recorded, 1.0, seed=1) == []
    steps = [steps_to_alarm(recorded, 0.25, after=5000, most=1000, seed=seed) for seed in range(3)]
    assert all(count is not None and count <= 500 for count in steps), steps


def test_a_command_has_the_alarm_on_its_standard_input(tmp_path: Path) -> None:
    """And as a sentence in its environment."""
    code = "import os, sys; open('got', 'w').write(sys.stdin.read() + os.environ['SYNCSCAN_ALARM'])"
    script = tmp_path / "alarm.py"
    script.write_text(code.replace("'got'", repr(str(tmp_path / "got"))))
    AlarmCommand(f"{sys.executable} {script}")(ALARM)
    until(lambda: (tmp_path / "got").exists() and (tmp_path / "got").read_text())
    text, _, sentence = (tmp_path / "got").read_text().partition("}")
    assert json.loads(text + "}")["line"] == 41
    assert sentence == str(ALARM)


def test_a_command_that_is_not_there_disturbs_nobody() -> None:
    run = AlarmCommand("/nowhere/at-all")
    for _ in range(10):
        run(ALARM)
    AlarmCommand("")(ALARM)


@pytest.mark.parametrize("command", ["touch 'a b", "'"])
def test_a_command_that_no_shell_could_split_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match="No closing quotation"):
        AlarmCommand(command)
