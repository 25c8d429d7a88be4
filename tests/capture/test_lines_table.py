"""Which frames of a stack are kept."""

from pathlib import Path

from syncscan.capture import lines_table, main_script
from syncscan.facts import program_frames


def test_the_runner_and_everything_around_it_is_cut() -> None:
    """A script run by `syncscan profile` shows the frames that it would have under `python`."""
    stack = [
        ("train.py", 5, "loss"),
        ("train.py", 9, "<module>"),
        ("<frozen runpy>", 88, "_run_code"),
        (main_script.__file__, 80, "_run_path"),
        ("click/core.py", 1, "main"),
    ]
    assert lines_table.trimmed(stack) == stack[:2]


def test_the_callback_s_own_frames_are_cut() -> None:
    """Torch calls through `fire_callbacks`."""
    ours = str(Path(main_script.__file__).with_name("lines.py"))
    stack = [(ours, 1, "callback"), ("torch/_utils.py", 1082, "fire_callbacks"), ("train.py", 5, "loss")]
    assert lines_table.trimmed(stack) == stack[2:]


def test_a_runpy_of_the_program_s_own_stays() -> None:
    """Only what lies next to the runner goes."""
    stack = [("a.py", 1, "f"), ("<frozen runpy>", 88, "_run_code"), ("b.py", 2, "main")]
    assert lines_table.trimmed(stack) == stack


def test_a_deep_stack_keeps_the_program_s_frames() -> None:
    """Below a library that nests deeply the program's line would be lost, were only the innermost frames kept."""
    deep = [("pyro/poutine/messenger.py", 12, "_context_wrap")] * 200
    stack = [("pyro/util.py", 135, "warn_if_nan"), *deep, ("train.py", 9, "<module>")]
    stored = lines_table.trimmed(stack)
    assert stored[0] == stack[0]
    assert stored[-1] == stack[-1]
    assert len(stored) == program_frames.INNERMOST + program_frames.OUTERMOST
