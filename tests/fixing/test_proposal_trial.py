"""Two runs are compared: output to the last printed digit, stderr without warnings, exit codes, graphs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from syncscan.fixing.messages import Racing, RunResult, WaitingLine
from syncscan.fixing.printed_lines import same_line
from syncscan.fixing.proposal_trial import Reference, waits_of
from syncscan.fixing.written_files import SteadyFiles
from syncscan.proof.outcome import Fingerprint
from tests.each import each


@each(
    ("a", "b", "same"),
    [
        ("loss 0.1234", "loss 0.1234", True),
        ("loss 0.1234", "loss 0.1235", True),
        ("loss 0.1234", "loss 0.1236", False),
        ("loss 1.23456789e-05", "loss 1.23456790e-05", True),
        ("loss 1.23e-05", "loss 1.24e-05", False),
        ("step 3", "step 4", False),
        ("loss 2", "loss 2.0", False),
        ("loss nan", "loss nan", True),
        ("loss nan", "loss 0.1", False),
        ("loss 0.5", "loss tensor(0.5)", False),
        ("best 0.5 at 3", "best 0.5 at 4", False),
    ],
)
def test_which_lines_are_the_same(a: str, b: str, same: bool) -> None:
    """A fraction may differ in its last printed digit; integers, words and signs may not differ."""
    assert same_line(a, b) == same


def reference(printed: str, again: str | None = None, **more: object) -> Reference:
    return Reference(RunResult(printed=printed, **more), RunResult(printed=printed if again is None else again, **more))  # type: ignore[arg-type]


def test_the_same_output_is_no_difference() -> None:
    assert reference("a 1\nb 2\n").differs(RunResult(printed="a 1\nb 2\n")) == ""


def test_a_lost_line_is_a_difference() -> None:
    assert (
        reference("a 1\nb 2\n").differs(RunResult(printed="a 1\n")) == "the patched program prints 1 line instead of 2"
    )


def test_a_changed_integer_is_a_difference() -> None:
    assert reference("n 1\n").differs(RunResult(printed="n 2\n")) == "the patched program prints 'n 2' instead of 'n 1'"


def test_numbers_that_differ_from_run_to_run_are_noise() -> None:
    """Only the words of such a line count."""
    noisy = reference("took 1.5 s\n", "took 1.7 s\n")
    assert noisy.differs(RunResult(printed="took 9.1 s\n")) == ""
    assert noisy.differs(RunResult(printed="needed 9.1 s\n")) != ""


def test_progress_bars_are_compared_part_by_part() -> None:
    """A carriage return ends a line."""
    assert reference("1/2\r2/2\n").differs(RunResult(printed="2/2\n")) != ""


def test_the_times_of_a_progress_bar_are_noise() -> None:
    """They, and how often the bar is drawn, depend on the machine; what it shows beside them doesn't."""
    bar = " 50%|#####     | 1/2 [00:01<00:01,  1.20s/it, loss=0.5]"
    other = " 50%|#####     | 1/2 [00:03<00:03,  3.10s/it, loss={}]"
    before = (
        f"start\n  0%|          | 0/2 [00:00<?, ?it/s]\r{bar}\r100%|##########| 2/2 [00:02<00:00,  1.21s/it]\nend\n"
    )
    run = reference("", errors=before)
    assert run.differs(RunResult(errors=f"start\n{other.format(0.5)}\nend\n")) == ""
    assert run.differs(RunResult(errors=f"start\n{other.format(0.7)}\nend\n")) != ""
    assert run.differs(RunResult(errors=f"start\n{other.format(0.5)}\n")) != ""
    assert reference("7it [00:01, 5.2it/s]").differs(RunResult(printed="7it [01:00:01, 5.1kit/s]")) == ""


def test_warnings_may_go_with_their_code() -> None:
    """They quote the line that raises them."""
    before = "train.py:3: UserWarning: slow\n  x = torch.tensor(y)\nerror\n"
    assert reference("", errors=before).differs(RunResult(errors="error\n")) == ""
    assert reference("", errors=before).differs(RunResult(errors="")) != ""


def test_another_exit_code_is_a_difference() -> None:
    """With the last line of stderr."""
    failed = RunResult(code=1, errors="Traceback\nValueError: no\n")
    assert reference("").differs(failed) == "the patched program ended with exit code 1: ValueError: no"


def test_graphs_that_stay_alive_are_a_difference() -> None:
    """Twice as many nodes, and twenty more, are allowed."""
    assert reference("", graph=40).differs(RunResult(graph=100)) == ""
    assert "autograd graphs alive" in reference("", graph=40).differs(RunResult(graph=101))


def test_other_losses_are_a_difference() -> None:
    """To the tolerance, relative to their size."""

    def tensors(value: float) -> dict[str, object]:
        return {"shapes": [[1]], "numbers": [[value, value]], "epsilons": [1e-7]}

    def run(value: float) -> RunResult:
        steps = [tensors(value)]
        parts = {"losses": steps, "begin": tensors(1.0), "end": tensors(value), "source": "losses"}
        return RunResult(fingerprint=msgspec.convert(parts, Fingerprint))

    reference = Reference(run(1.0), run(1.0))
    assert reference.differs(run(1.0)) == ""
    assert reference.differs(run(1.1)) != ""


def test_waits_are_counted_by_line() -> None:
    """Several rules may wait in one line."""
    places = [WaitingLine("item", "", "", "a.py", 3, n, "READ") for n in (2, 5)]
    assert waits_of(RunResult(places=places)) == {("a.py", 3): 7}


def test_a_race_that_came_in_is_a_difference() -> None:
    """One that was there before is none, wherever its line is now."""
    race = Racing("read-before-copy", "the host reads too early", "/train.py", 4)
    moved = Racing("read-before-copy", "the host reads too early", "/train.py", 9)
    why = "the patched program races: the host reads too early, in line 4"
    assert reference("a").differs(RunResult(printed="a", races=[race])) == why
    assert reference("a", races=[race]).differs(RunResult(printed="a", races=[moved])) == ""
    assert reference("a", races=[race]).differs(RunResult(printed="a", races=[race, moved])) != ""


def test_a_file_that_is_written_is_compared(tmp_path: Path) -> None:
    """Where it differs, the sentence names it."""
    for name, text in {"a": "[0.5]", "b": "[0.7]"}.items():
        (tmp_path / name).write_text(text)
    first, other = (RunResult(written={"/scores.json": str(tmp_path / name)}) for name in "ab")
    files = SteadyFiles(first.written, first.written)
    why = "the patched program writes '0.7' instead of '0.5' as [0] in /scores.json"
    assert Reference(first, first, files).differs(other) == why
    assert Reference(first, first, files).differs(first) == ""


@pytest.mark.parametrize(
    ("printed", "again", "why"),
    [
        ("mean 0.5", "mean 0.5", ""),
        ("done", "done", "has no optimizer, and prints or writes no result"),
        ("epoch 1\nepoch 2", "epoch 1\nepoch 2", "has no optimizer, and prints or writes no result"),
        ("lr 0.125, 3 layers", "lr 0.125, 3 layers", "has no optimizer, and prints or writes no result"),
        ("3 of 20, lr 0.125", "3 of 20, lr 0.125", ""),
        ("mean 0.5", "mean 0.7", "what it prints or writes differs from run to run"),
    ],
)
def test_a_program_without_a_result_is_not_compared(printed: str, again: str, why: str) -> None:
    """A number that both runs print is one; a counter isn't, nor is a number that the source holds."""
    runs = [RunResult(printed=text) for text in (printed, again)]
    of_both = Reference(*runs, constants={0.125, 3.0})
    assert of_both.why_nothing_is_compared.rpartition("compared: ")[2].removeprefix("it ") == why


def test_what_differs_between_two_runs_is_named() -> None:
    """With an example."""
    assert reference("took 1.5 s", "took 1.7 s").noise == ["1 printed line, such as 'took 1.5 s'"]


def test_a_program_that_differs_from_itself_is_not_compared() -> None:
    """By its losses: whatever it prints, no change could be told."""

    def run(value: float) -> RunResult:
        loss = {"shapes": [[1]], "numbers": [[value, value]], "epsilons": [1e-7]}
        return RunResult(fingerprint=msgspec.convert({"losses": [loss]}, Fingerprint))

    why = "nothing that it computes could be compared: two runs of the first program differ too much to compare"
    assert Reference(run(1.0), run(1.5)).why_nothing_is_compared == why
    assert Reference(run(1.0), run(1.0)).why_nothing_is_compared == ""
