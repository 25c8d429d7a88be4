"""Whose file it is: paths as the profiler, Python and Windows write them, and the scripts of entry points."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncscan.model.libraries import (
    LIBRARIES,
    in_package,
    is_library,
    only_starts,
    package_of,
    passes_on,
    path_in_package,
)
from tests.each import each

SITE = "/venv/lib/python3.12/site-packages"


@each(
    "file",
    [
        "train.py",
        "./project/train.py",
        "/home/me/project/train.py",
        "/tmp/ipykernel_17/1234.py",
        "<ipython-input-3-abc>",
        "torchbench/run.py",
        "torch_experiments/model.py",
        "datasets/coco.py",
        "/home/me/torch/train.py",
        "C:\\me\\train.py",
        "C:\\me\\Lib\\train.py",
        f"{SITE}/syncscan/capture/demo_step.py",
        "syncscan\\capture\\demo_step.py",
    ],
)
def test_the_users_own(file: str) -> None:
    """Scripts, packages, notebook cells and the demo's steps are the user's, also in folders named like a library."""
    assert not is_library(file)


@each(
    "file",
    [
        "torch/functional.py",
        "torch_geometric/nn/conv/gcn_conv.py",
        "gpytorch/distributions/multivariate_normal.py",
        f"{SITE}/some_library/x.py",
        "/usr/lib/python3/dist-packages/x.py",
        "/usr/lib/python3.12/threading.py",
        "C:\\venv\\Lib\\site-packages\\some_library\\x.py",
        "C:\\Python312\\Lib\\contextlib.py",
        "C:\\Python312\\Lib\\concurrent\\futures\\thread.py",
        "transformers/trainer.py",
        "lightning/pytorch/trainer/trainer.py",
        "runpy.py",
        "<frozen runpy>",
        "<eval_with_key>.7",
        "<string>",
        "syncscan/capture/session.py",
    ],
)
def test_not_the_users(file: str) -> None:
    """Libraries, whatever is installed, the standard library and generated code aren't."""
    assert is_library(file)


@pytest.mark.parametrize(
    "file",
    [
        "torch/distributions/normal.py",
        f"{SITE}/torch/distributions/normal.py",
        "C:\\venv\\Lib\\site-packages\\torch\\distributions\\normal.py",
        "/home/me/pytorch/torch/distributions/normal.py",
        "torch\\distributions\\normal.py",
    ],
)
@each("package", ["torch", "torch/distributions", "torch/distributions/normal.py"])
def test_a_file_lies_in_its_package(file: str, package: str) -> None:
    """As the profiler strips it, installed, on Windows, and in a source tree whose root nobody knows."""
    assert in_package(file, package)


@each(
    ("file", "package"),
    [
        ("gpytorch/distributions/multivariate_normal.py", "torch/distributions"),
        (f"{SITE}/gpytorch/distributions/multivariate_normal.py", "torch/distributions"),
        ("/home/me/gpytorch/distributions/normal.py", "torch/distributions"),
        ("torch/distributions_old/normal.py", "torch/distributions"),
        ("torch/distributions.py", "torch/distributions"),
        (f"{SITE}/library/torch/distributions/normal.py", "torch/distributions"),
        ("project/torch/distributions/normal.py", "torch/distributions"),
        ("torch/serialization.pyc", "torch/serialization.py"),
        ("torch", "torch/distributions"),
    ],
)
def test_a_package_is_compared_folder_by_folder(file: str, package: str) -> None:
    """A part of a name is no package, nor is a package of the same name inside another one."""
    assert not in_package(file, package)


@pytest.mark.parametrize("file", ["torch/optim/adam.py", f"{SITE}/torch/optim/adam.py", "torch\\optim\\adam.py"])
def test_a_path_in_its_package_is_the_same_in_every_environment(file: str) -> None:
    """An id or a place that is told by it doesn't change with the disk."""
    assert path_in_package(file) == "torch/optim/adam.py"


@pytest.mark.parametrize(
    "file", ["torch/_tensor.py", "torch/utils/_device.py", f"{SITE}/torch/functional.py", "/usr/lib/python3.12/copy.py"]
)
def test_what_only_passes_a_call_on(file: str) -> None:
    """Torch's thin Python, and the standard library."""
    assert passes_on(file)


@pytest.mark.parametrize("file", ["torch/optim/adam.py", "gpytorch/functional.py", "torchmetrics/functional.py"])
def test_what_decides_by_itself(file: str) -> None:
    """A library's own code, also in a file that torch has one named like."""
    assert not passes_on(file)


def test_libraries_are_names_of_packages() -> None:
    """No path, no pattern and nothing that a split went wrong over: each can be imported under this name."""
    assert all(name.isidentifier() for name in LIBRARIES)
    assert {"torch", "numpy", "transformers"} <= LIBRARIES


@each(
    ("file", "package"),
    [
        ("train.py", None),
        ("/tmp/ipykernel_17/1234.py", None),
        ("torch/functional.py", "torch"),
        (f"{SITE}/six.py", "six"),
        (f"{SITE}/lightning/pytorch/trainer/trainer.py", "lightning"),
        ("/usr/lib/python3/dist-packages/x.py", "x"),
        ("/usr/lib/python3.12/json/decoder.py", "python"),
        ("C:\\Python312\\Lib\\contextlib.py", "python"),
        ("C:\\venv\\Lib\\site-packages\\some_library\\x.py", "some_library"),
        ("threading.py", "python"),
        ("<frozen runpy>", "python"),
        ("/tmp/torchinductor_me/ab/cab.py", "torch"),
    ],
)
def test_a_library_s_file_belongs_to_its_top_level_package(file: str, package: str | None) -> None:
    """The standard library's and generated code to Python, what torch's compiler writes to torch, a user's to none."""
    assert package_of(file) == package


PIP = """\
import re
import sys
from toylib.cli import main
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(main())
"""
UV = """\
import sys
from toylib.cli import main
if __name__ == "__main__":
    if sys.argv[0].endswith("-script.pyw"):
        sys.argv[0] = sys.argv[0][:-11]
    sys.exit(main())
"""
SETUPTOOLS = """\
# EASY-INSTALL-ENTRY-SCRIPT: 'toylib','console_scripts','toy'
import sys
if __name__ == '__main__':
    sys.exit(load_entry_point('toylib', 'console_scripts', 'toy')())
"""
OWN = """\
import torch
for step in range(100):
    train(step)
"""


@pytest.mark.parametrize("text", [PIP, UV, SETUPTOOLS])
def test_a_script_that_only_calls_an_entry_point_starts_the_program(tmp_path: Path, text: str) -> None:
    """Whoever has written it."""
    script = tmp_path / "toy"
    script.write_text(f"#!/env/bin/python\n{text}")
    assert only_starts(str(script))


@pytest.mark.parametrize(("name", "text"), [("toy", OWN), ("toy.py", PIP)])
def test_a_script_with_lines_of_its_own_is_the_program(tmp_path: Path, name: str, text: str) -> None:
    """Also without a suffix; and a file of Python's is always somebody's."""
    script = tmp_path / name
    script.write_text(f"#!/env/bin/python\n{text}")
    assert not only_starts(str(script))


def test_what_isn_t_there_is_no_such_script() -> None:
    """As generated code; what Python runs modules with is none of the program's lines, nor a command of Windows's."""
    assert not only_starts("<string>")
    assert not only_starts("/nowhere/toy")
    assert only_starts("<frozen runpy>")
    assert only_starts("C:/env/Scripts/toy.exe/__main__.py")
