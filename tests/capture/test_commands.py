"""A command as a user types it, and what of it is a program of Python's."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from syncscan.capture.commands import Command, in_this_process, names_one_program, ranks_wanted, resolved
from syncscan.errors import UsageError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a script, a shell script, and a folder on the path with commands."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    bin = tmp_path / "bin"
    bin.mkdir()
    executable(bin / "yolo", f"#!{sys.executable}\nfrom ultralytics import main")
    executable(bin / "torchrun", f"#!{sys.executable}\n")
    executable(bin / "jupyter", f"#!{sys.executable}\n")
    executable(bin / "uv", "#!/bin/bash\n")
    executable(tmp_path / "run.sh", "#!/bin/bash\npython train.py\n")
    monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{Path(sys.executable).parent}")


def executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def program(*words: str, module: bool = False) -> tuple[str, tuple[str, ...], bool, str]:
    """Target, arguments, whether it is a module, and launcher."""
    of = resolved(words, module=module)
    return Path(of.target).name, of.arguments, of.module, of.launcher


def test_a_script_runs_here_with_its_arguments() -> None:
    """As it always did; `python` before it changes nothing."""
    assert program("train.py", "--lr", "1") == ("train.py", ("--lr", "1"), False, "")
    assert program("python", "train.py", "--lr", "1") == ("train.py", ("--lr", "1"), False, "")
    assert program("python", "-u", "train.py") == ("train.py", (), False, "")


def test_a_module_is_one_by_option_or_by_python_s() -> None:
    """`syncscan profile -m pkg` and `syncscan profile python -m pkg`."""
    assert program("pkg.train", "x", module=True) == ("pkg.train", ("x",), True, "")
    assert program("python", "-m", "pkg.train", "x") == ("pkg.train", ("x",), True, "")


def test_a_console_script_is_found_on_the_path() -> None:
    """It is Python's, and only calls a package."""
    of = resolved(("yolo", "detect", "train"))
    assert (Path(of.target).name, of.arguments, of.launcher, of.console) == ("yolo", ("detect", "train"), "", True)


@pytest.mark.parametrize(
    "words",
    [
        ("torchrun", "--nproc-per-node", "2", "train.py"),
        ("python", "-m", "torch.distributed.run", "train.py"),
        ("python", "-O", "train.py"),
        ("./run.sh", "--lr", "1"),
        ("uv", "run", "train.py"),
        ("jupyter", "execute", "nb.ipynb"),
    ],
)
def test_who_starts_other_processes_runs_as_typed(words: tuple[str, ...]) -> None:
    """Launchers, shell scripts, another way to call Python: the words are what was typed, with the command's place."""
    of = resolved(words)
    assert of.launcher
    assert of.target == ""
    assert of.words[1:] == words[1:]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nosuch",), "There is no script or command nosuch"),
        (("lightning", "run", "train.py"), "There is no script or command lightning"),
        (("python",), "has no steps"),
        (("python", "-c", "1"), "has no file, so its lines can't be reported"),
        (("python", "nosuch.py"), "There is no script at nosuch.py"),
        (("python", "-m"), "needs the name of a module"),
        (("train.ipynb",), "train.ipynb is a notebook, not a script"),
        (("python", "train.ipynb"), "train.ipynb is a notebook, not a script"),
    ],
)
def test_what_can_t_be_run_is_refused_with_what_works(words: tuple[str, ...], says: str) -> None:
    """With a hint."""
    with pytest.raises(UsageError, match=says) as refused:
        resolved(words)
    assert refused.value.hint


def test_a_launcher_s_program_runs_alone_as_one_rank_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the launcher's own parser: torch's knows which of its options take a value."""
    pytest.importorskip("torch")
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "before")
    of = in_this_process(resolved(("torchrun", "--nproc-per-node", "2", "train.py", "--lr", "1")), "dryrun")
    assert (of.target, of.arguments, os.environ["WORLD_SIZE"]) == ("train.py", ("--lr", "1"), "1")
    of = in_this_process(resolved(("torchrun", "-m", "pkg.train", "x")), "dryrun")
    assert (of.target, of.arguments, of.module) == ("pkg.train", ("x",), True)


def test_where_nobody_knows_the_program_the_script_is_asked_for() -> None:
    """A notebook runs in a kernel, a shell script may run anything."""
    with pytest.raises(UsageError, match="jupyter starts others") as refused:
        in_this_process(resolved(("jupyter", "execute", "nb.ipynb")), "dryrun")
    as_script = "jupyter nbconvert --to script nb.ipynb, then syncscan dryrun nb.py."
    assert refused.value.hint == f"Convert the notebook first: {as_script}"
    here = Command("train.py", (), ("train.py",))
    assert in_this_process(here, "dryrun") is here


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        (("torchrun", "train.py", "--nproc-per-node", "2"), None),
        (("torchrun", "--nproc_per_node=4", "--nnodes", "1:2", "train.py"), 8),
        (("torchrun", "--nproc-per-node", "1", "-m", "pkg.train"), 1),
        (("torchrun", "--nproc-per-node", "gpu", "train.py"), None),
        (("train.py", "--num-processes", "3"), None),
    ],
)
def test_the_ranks_that_a_launcher_was_asked_for_are_known(words: tuple[str, ...], ranks: int | None) -> None:
    """By its own options, in either spelling; what comes behind the program is the program's."""
    assert ranks_wanted(resolved(words)) == ranks


def test_accelerate_s_processes_are_ranks() -> None:
    """By `--num_processes`, as its own help spells it."""
    words = ("launch", "--cpu", "--num_processes", "2", "train.py")
    assert ranks_wanted(Command("", words, ("accelerate", *words), launcher="accelerate")) == 2


ENTRY_POINT = """\
#!{python}
# -*- coding: utf-8 -*-
import re
import sys
from {module} import {function}
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit({function}())
"""
"""A console script as pip writes it."""
LONG = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from {module} import {function}
if __name__ == '__main__':
    sys.exit({function}())
"""
"""As pip writes it where the interpreter's path is too long, or has a space in it, for the first line."""


@pytest.mark.parametrize("shape", [ENTRY_POINT, LONG])
def test_a_console_script_as_pip_writes_it_runs_here(shape: str, tmp_path: Path) -> None:
    """Whichever package's: what it is called says nothing, as it is no launcher's."""
    script = shape.format(python=sys.executable, module="ultralytics.cfg", function="entrypoint")
    executable(tmp_path / "bin" / "detector", script)
    of = resolved(("detector", "train"))
    assert (Path(of.target).name, of.arguments, of.launcher, of.console) == ("detector", ("train",), "", True)


@pytest.mark.parametrize(
    ("name", "module", "words"),
    [
        ("deepspeed", "deepspeed.launcher.runner", ("--num_gpus", "2")),
        ("fabric", "lightning.fabric.cli", ("run", "--accelerator=cpu", "--devices=2")),
        ("lightning", "lightning_sdk.cli", ("run", "model")),
        ("accelerate", "accelerate.commands.accelerate_cli", ("launch", "--num_processes", "2")),
        ("composer", "composer.cli", ("-n", "2")),
    ],
)
def test_a_launcher_s_console_script_starts_processes(
    name: str, module: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As typed for a capture; the script alone for a dry run, also where the package's own parser can't be imported."""
    for variable in (
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "GROUP_RANK",
        "MASTER_ADDR",
        "MASTER_PORT",
    ):
        monkeypatch.setenv(variable, "before")
    for package in ("accelerate.commands.launch", "deepspeed.launcher.runner"):
        monkeypatch.setitem(sys.modules, package, None)
    executable(tmp_path / "bin" / name, ENTRY_POINT.format(python=sys.executable, module=module, function="main"))
    of = resolved((name, *words, "train.py", "--lr", "1"))
    assert (of.target, of.launcher, of.words[1:]) == ("", name, (*words, "train.py", "--lr", "1"))
    alone = in_this_process(of, "dryrun")
    assert (alone.target, alone.arguments) == ("train.py", ("--lr", "1"))
    assert names_one_program(of)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (Command("train.py", (), ("train.py",)), True),
        (Command("", ("train.py",), ("/bin/srun", "train.py"), launcher="srun"), True),
        (Command("", ("a.ipynb", "b.ipynb"), ("/bin/papermill", "a.ipynb", "b.ipynb"), launcher="papermill"), False),
        (Command("", ("train.py",), ("/other/bin/mine", "train.py"), launcher="mine", console=True), False),
    ],
)
def test_a_command_names_one_program_where_this_process_can_run_it(command: Command, expected: bool) -> None:
    """A launcher's is its script; a notebook runs in a kernel, and another environment's script there."""
    assert names_one_program(command) is expected
