"""`syncscan fix`: exit codes, what is written, and when: whole files, and nothing with uncommitted changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from syncscan.cli import group
from syncscan.errors import ProgramFailed, UsageError
from syncscan.fixing.fix_command import write_files
from syncscan.model.fix import Fixed, Patched
from syncscan.proof.report import verdict_of
from syncscan.scratch import sentence
from syncscan.source.text import read
from tests.fixing.test_report import AFTER, BEFORE, FILE, FIXED, NOTHING
from tests.proof.test_report import NOISY, PROOF


@pytest.fixture
def answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The result of `syncscan.fix` under `fixed`, a patch of train.py here; the options that it got are added."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(BEFORE)
    file = replace(FILE, path=str(tmp_path / "train.py"))
    answers: dict[str, Any] = {"fixed": replace(FIXED, files=(file,))}

    def fix(program: str, arguments: tuple[str, ...], **options: Any) -> Any:
        answers.update(options, program=program, arguments=arguments)
        return answers["fixed"]

    monkeypatch.setattr("syncscan.fixing.fix", fix)
    return answers


def run(*words: str) -> Result:
    return CliRunner().invoke(group, ["fix", *words])


def test_nothing_is_written_unasked(answer: dict[str, Any]) -> None:
    """The patch is printed."""
    result = run("train.py")
    assert (result.exit_code, Path("train.py").read_text()) == (0, BEFORE)
    assert result.stdout.startswith("--- a/train.py")


def test_an_option_behind_the_script_is_noted(answer: dict[str, Any]) -> None:
    """It is the script's; a note says so, as in a dry run."""
    assert "note: --select went to train.py" in run("train.py", "--select", "item").stderr
    assert "note:" not in run("train.py", "--lr", "3").stderr


def test_write_applies_the_patch(answer: dict[str, Any]) -> None:
    """And says to which file, after what holds for the program's own files."""
    result = run("--write", "train.py")
    assert (Path("train.py").read_text(), result.stderr) == (AFTER, f"{sentence()}\nWrote train.py.\n")


def test_the_last_line_is_the_command_that_measures_the_patch(answer: dict[str, Any]) -> None:
    """It holds the program as typed, and measures the patch, or the working tree once that is written."""
    proved = "Next, on a GPU: syncscan fix --prove train.py --lr 3"
    assert run("train.py", "--lr", "3").stdout.splitlines()[-1] == proved
    assert run("--write", "train.py").stdout.splitlines()[-1] == "Next, on a GPU: syncscan prove --rev HEAD train.py"
    assert "Next" not in run("--unsafe", "train.py").stdout
    answer["fixed"] = NOTHING
    assert "Next" not in run("train.py").stdout


@pytest.mark.parametrize(
    ("fixed", "code"),
    [
        (FIXED, 1),
        (replace(FIXED, unjudged="the program fails"), 1),
        (NOTHING, 0),
        (replace(NOTHING, unjudged="the program fails"), 2),
    ],
)
def test_check_fails_where_something_can_be_fixed_or_that_is_unknown(
    answer: dict[str, Any], fixed: Any, code: int
) -> None:
    """Without --check, the exit code is 0."""
    answer["fixed"] = fixed
    assert (run("--check", "train.py").exit_code, run("train.py").exit_code) == (code, 0)


def test_check_does_not_pass_on_a_program_that_fails(answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not judge; without --check, the failure has its own exit code."""

    def fail(*words: Any, **options: Any) -> Any:
        raise ProgramFailed("train.py can't be run dry: ValueError: no data.")

    monkeypatch.setattr("syncscan.fixing.fix", fail)
    checked = run("--check", "train.py")
    assert (checked.exit_code, "ValueError: no data" in checked.stderr) == (2, True)
    assert isinstance(run("train.py").exception, ProgramFailed)


def test_a_gain_that_is_not_proven_is_not_written(answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """With --prove, --write keeps only what gains."""
    monkeypatch.setattr("syncscan.fixing.fix_gains.prove_patch", lambda *args: NOISY)
    result = run("--prove", "--write", "train.py")
    assert "so no file was written" in result.stderr
    assert Path("train.py").read_text() == BEFORE
    monkeypatch.setattr("syncscan.fixing.fix_gains.prove_patch", lambda *args: PROOF)
    assert run("--prove", "--write", "train.py").exit_code == 0
    assert Path("train.py").read_text() == AFTER


@pytest.mark.parametrize(("form", "stream"), [("text", "stdout"), ("markdown", "stdout"), ("json", "stderr")])
def test_the_proof_is_in_the_report_or_beside_it(
    answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch, form: str, stream: str
) -> None:
    """Formats that machines read have no place for it."""
    monkeypatch.setattr("syncscan.fixing.fix_gains.prove_patch", lambda *args: PROOF)
    result = run("--prove", "--format", form, "train.py")
    shown = [name for name in ("stdout", "stderr") if verdict_of(PROOF) in getattr(result, name)]
    assert shown == [stream]


def test_the_measurement_has_a_limit(answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before, and what is under way on the way."""
    limits: list[float] = []

    def prove(fixed: Any, limit_s: float, progress: Any, trace: str | None) -> Any:
        limits.append(limit_s)
        progress("pair 1: 2% less")
        return PROOF

    monkeypatch.setattr("syncscan.fixing.fix_gains.prove_patch", prove)
    result = run("--prove", "train.py")
    assert limits == [180.0]
    assert result.stderr.endswith("\nMeasuring the patch, for 180 s at most.\npair 1: 2% less\n")


def test_options_and_arguments_are_passed_on(answer: dict[str, Any]) -> None:
    """Arguments behind the script's name are the script's own."""
    run("--unsafe", "--unverified", "--steps", "7", "--select", "item,non*", "train.py", "--unsafe", "x")
    assert (answer["program"], answer["arguments"]) == ("train.py", ("--unsafe", "x"))
    assert (answer["unsafe"], answer["unverified"], answer["steps"]) == (True, True, 7)
    assert answer["select"] == ("item", "non*")


def test_a_pull_request_is_printed(answer: dict[str, Any]) -> None:
    assert run("--format", "pr", "train.py").stdout.startswith("Remove 1 host-device sync from train.py\n\n")


def test_json_is_json(answer: dict[str, Any]) -> None:
    assert json.loads(run("--format", "json", "train.py").stdout)["schema"] == "syncscan.fix/2"


def test_a_module_is_not_proven(answer: dict[str, Any]) -> None:
    """Its script is."""
    assert isinstance(run("-m", "--prove", "train").exception, UsageError)


def test_an_unknown_rule_is_refused(answer: dict[str, Any]) -> None:
    assert isinstance(run("--select", "itm", "train.py").exception, UsageError)


def patch(path: Path, old: str, new: str) -> Fixed:
    """A patch of one file that replaces a text."""
    text = read(str(path))
    file = Patched(path.name, text.path, text.text, text.text.replace(old, new), text.encoding, "")
    return Fixed(program=path.name, fixes=(), files=(file,), waits_before=1, waits_after=0, tolerance=1e-5, seconds=0.0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 9\r\nb = 2\r\n"),
        (b"\xef\xbb\xbfa = 1\n", b"\xef\xbb\xbfa = 9\n"),
        (b"# -*- coding: latin-1 -*-\na = 1  # \xe9\n", b"# -*- coding: latin-1 -*-\na = 9  # \xe9\n"),
        (b"a = 1", b"a = 9"),
        (b"a = 1\n\x0cb = 2\n", b"a = 9\n\x0cb = 2\n"),
    ],
    ids=["CRLF", "byte order mark", "latin-1", "no line end", "form feed"],
)
def test_bytes_beside_the_change_stay(tmp_path: Path, before: bytes, after: bytes) -> None:
    """Encoding, line ends and comments."""
    file = tmp_path / "train.py"
    file.write_bytes(before)
    assert write_files(patch(file, "a = 1", "a = 9"), force=False) == ["train.py"]
    assert file.read_bytes() == after


def test_permissions_stay(tmp_path: Path) -> None:
    """A script stays executable."""
    file = tmp_path / "train.py"
    file.write_text("a = 1\n")
    file.chmod(0o755)
    write_files(patch(file, "1", "9"), force=False)
    assert file.stat().st_mode & 0o777 == 0o755


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path) -> None:
    """The patch was verified for another text."""
    file = tmp_path / "train.py"
    file.write_text("a = 1\n")
    fixed = patch(file, "1", "9")
    file.write_text("a = 1  # mine\n")
    with pytest.raises(UsageError, match="was changed while its fixes were verified"):
        write_files(fixed, force=True)
    assert file.read_text() == "a = 1  # mine\n"


def test_uncommitted_changes_are_refused_without_force(tmp_path: Path) -> None:
    """The file is tracked by git."""
    file = tmp_path / "train.py"
    file.write_text("a = 1\n")
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    for command in (("init", "-q"), ("add", "train.py"), (*identity, "commit", "-qm", "Add")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    write_files(patch(file, "1", "2"), force=False)
    with pytest.raises(UsageError, match="has uncommitted changes"):
        write_files(patch(file, "2", "3"), force=False)
    write_files(patch(file, "2", "3"), force=True)
    assert file.read_text() == "a = 3\n"
