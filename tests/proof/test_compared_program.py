"""A program that a user names is a script, or a function of a file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from syncscan.errors import UsageError
from syncscan.proof.compared_program import at_revision, program
from syncscan.proof.outcome import Side
from syncscan.proof.prove import _programs, prove


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "odd:name").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def repository(folder: Path) -> Path:
    """Two commits; the script and a file that it reads differ, and the folder has changes that aren't committed."""
    git(folder, "init", "-q", "-b", "main")
    (folder / "sub").mkdir()
    for text in ("one", "two"):
        (folder / "sub" / "train.py").write_text(text)
        git(folder, "add", "sub")
        git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", text)
        git(folder, "tag", text)
    (folder / "sub" / "train.py").write_text("three")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def test_a_name_with_a_colon_is_a_function_unless_such_a_file_is_there(folder: Path) -> None:
    """A file of that name comes first."""
    specs = ["train.py", "train.py:step", "odd:name"]
    assert [(p.path.name, p.function) for p in map(program, specs)] == [
        ("train.py", ""), ("train.py", "step"), ("odd:name", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nowhere.py", "train.py"), "no script at nowhere.py"),
        (("train.py",), "Two programs are needed"),
        (("train.py:a", "train.py"), "a script and a function"),
    ],
)
def test_a_wrong_call_is_one_sentence(folder: Path, words: tuple[str, ...], why: str) -> None:
    """Before anything is run."""
    with pytest.raises(UsageError, match=why):
        prove(*words)


def test_a_function_takes_no_arguments(folder: Path) -> None:
    """Nobody would read them."""
    with pytest.raises(UsageError, match="called without arguments"):
        prove("train.py:a", "train.py:b", arguments=["--x"])


def test_a_revision_is_in_a_worktree_that_is_gone_afterwards(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in the folder there that matches this one; the user's files and git's list stay as they were."""
    monkeypatch.chdir(repository / "sub")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {repository}/hooked")
    hook.chmod(0o755)
    before = git(repository, "status", "--porcelain"), git(repository, "worktree", "list")
    with at_revision(program("train.py"), "one") as old:
        assert (old.path.read_text(), old.name) == ("one", "train.py at one")
        assert (old.folder, old.path.parent) == (old.path.parent, old.folder)
        place = old.folder
    assert not place.exists()
    assert (git(repository, "status", "--porcelain"), git(repository, "worktree", "list")) == before
    assert (repository / "sub" / "train.py").read_text() == "three"


def test_one_revision_is_compared_with_the_folder_as_it_is(repository: Path) -> None:
    """With what isn't committed; two are compared with each other."""
    matches = []
    for revisions in (["one"], ["one", "two"]):
        with _programs("sub/train.py", None, (), revisions) as programs:
            matches.append([programs[side].path.read_text() for side in Side])
    assert matches == [["one", "three"], ["one", "two"]]


@pytest.mark.parametrize(
    ("path", "revision", "why"),
    [("sub/train.py", "nope", "no revision nope"), ("train.py", "one", "at one doesn't exist at that revision"),
     ("sub/train.py", "--help", "no revision --help")],
)  # fmt: skip
def test_what_is_not_in_the_repository_is_reported(repository: Path, path: str, revision: str, why: str) -> None:
    """And no worktree is left."""
    with pytest.raises(UsageError, match=why), at_revision(program(path), revision):
        pass
    assert len(git(repository, "worktree", "list").splitlines()) == 1


def test_a_program_without_a_repository_has_no_revisions(folder: Path) -> None:
    """It is said which program."""
    with pytest.raises(UsageError, match=r"train\.py isn't in a git repository"), at_revision(program("train.py"), "x"):
        pass


def console(folder: Path, package: str) -> str:
    """A script as an installation makes it for an entry point."""
    script = folder / "train"
    script.write_text(f"#!/env/bin/python\nimport sys\nfrom {package}.cli import main\nsys.exit(main())\n")
    return str(script)


def test_a_console_script_s_revision_is_its_package_s(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script stays where it is installed; what it imports is found in the worktree."""
    (repository / "sub" / "toytrain").mkdir()
    (repository / "sub" / "toytrain" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(repository / "sub"))
    script = console(tmp_path_factory.mktemp("bin"), "toytrain")
    with at_revision(program(script), "one") as old:
        assert (str(old.path), old.moved is not None and old.moved[0]) == (script, repository.resolve())


def test_a_console_script_of_an_installed_package_has_no_revisions(repository: Path) -> None:
    """It would run the same code at each, and be proven equal."""
    script = console(repository, "pytest")
    with pytest.raises(UsageError, match="the same at any revision"), at_revision(program(script), "one"):
        pass
