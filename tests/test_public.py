"""`import syncscan` keeps its promises."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api as mypy

import syncscan
from syncscan.cli import all_commands, module_of
from tests.each import each


def test_public_names_are_sorted_and_there() -> None:
    """`__all__` is sorted, and every name in it can be had."""
    assert sorted(syncscan.__all__) == syncscan.__all__
    assert [name for name in syncscan.__all__ if not hasattr(syncscan, name)] == []


def test_these_names_are_public() -> None:
    """The values that a user holds, the doors, and the errors; a new one is added here on purpose."""
    errors = {"MissingExtra", "ProgramFailed", "SyncscanError", "UsageError"}
    errors |= {"TraceEmpty", "TraceError", "TraceNotFound", "TraceTooLarge", "TraceUnreadable"}
    values = {
        "Analysis",
        "Category",
        "Finding",
        "Fixed",
        "Habit",
        "Picture",
        "Projection",
        "Proof",
        "Session",
        "SyncPoint",
        "Watch",
    }
    values |= {"Guard", "GuardedSync", "SyncWarning", "UnexpectedSync"}
    doors = {
        "__version__",
        "allow",
        "analyze",
        "analyze_fleet",
        "fix",
        "guard",
        "pretend_gpu",
        "profile",
        "prove",
        "watch",
    }
    assert set(syncscan.__all__) == errors | values | doors


@each("name", [n for n in syncscan.__all__ if n != "__version__"])
def test_every_public_name_says_what_it_is(name: str) -> None:
    """Each has a docstring of its own, and so has each of its public methods."""
    thing = getattr(syncscan, name)
    assert thing.__doc__
    if inspect.isclass(thing):
        methods = inspect.getmembers(thing, inspect.isfunction)
        own = [n for n, m in methods if not n.startswith("_") and m.__module__.startswith("syncscan")]
        assert [n for n in own if not getattr(thing, n).__doc__] == []


@pytest.mark.slow
def test_a_misspelt_name_fails_type_checking(tmp_path: Path) -> None:
    """`syncscan.analize` is no name for mypy --strict, and `syncscan.analyze` has its type."""
    script = tmp_path / "script.py"
    script.write_text("import syncscan\n\nsyncscan.analize('a')\nreveal_type(syncscan.analyze)\n")
    libraries = "numpy,pandas,torch,click,rich,msgspec,jinja2,IPython".replace(",", ".*,") + ".*"
    quick = f"[mypy-{libraries}]\nfollow_imports = skip\nfollow_imports_for_stubs = True\n"
    (tmp_path / "mypy.ini").write_text(f"[mypy]\nstrict = True\nfollow_imports = silent\n{quick}")
    out, _, status = mypy.run(["--no-incremental", "--config-file", str(tmp_path / "mypy.ini"), str(script)])
    assert status == 1
    assert 'Module has no attribute "analize"' in out
    assert "-> syncscan.model.analysis.Analysis" in out


def test_importing_costs_nothing() -> None:
    """Neither the import nor `--help` loads numpy, pandas, rich or torch, nor what only writing files needs."""
    heavy = ("numpy", "pandas", "rich", "torch", "msgspec", "tempfile")
    code = f"import sys, syncscan, syncscan.cli; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_analyzing_imports_only_what_it_uses() -> None:
    """Loading, every stage and JSON work without torch, pandas, templates, rich, other commands and doors."""
    path = Path(__file__).parents[1] / "sample_traces" / "log_item.pt.trace.json.gz"
    command = f"['syncscan', 'analyze', '--format', 'json', {str(path)!r}]"
    code = f"import atexit, sys; sys.argv = {command}; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; import syncscan.cli; syncscan.cli.main()"], capture_output=True, text=True
    )
    loaded = set(done.stderr.split("\n")[-2].split())
    unused = ("torch", "pandas", "jinja2", "rich", "fsspec", "zstandard", "gate")
    assert [name for name in unused if {name, f"syncscan.{name}"} & loaded] == []
    slow = (
        "dataclasses",
        "numpy.ma",
        "statistics",
        "random",
        "hashlib",
        "ssl",
        "difflib",
        "shutil",
        "base64",
        "tempfile",
    )
    assert [name for name in slow if name in loaded] == []
    assert [name for name in all_commands() if module_of(name) in loaded] == ["analyze"]
    assert [
        name for name in loaded if re.fullmatch(r"syncscan\.(capture|dryrun|proof|fleet|integrations).*", name)
    ] == []


def test_no_function_shadows_its_module() -> None:
    """`syncscan.whatif.projector` is the module, whatever a package exports: each submodule can be had by its name."""
    root = Path(inspect.getfile(syncscan)).parent
    shadowed = []
    for file in root.rglob("*.py"):
        parts = file.relative_to(root.parent).with_suffix("").parts
        if parts[-1] in ("__init__", "__main__") or "tensorboard" in parts:
            continue
        package, name = ".".join(parts[:-1]), parts[-1]
        if name in ("transformers", "lightning") and importlib.util.find_spec(name) is None:
            continue  # the trainers' callbacks subclass what isn't installed here
        __import__(f"{package}.{name}")
        if not inspect.ismodule(getattr(sys.modules[package], name)):
            shadowed.append(f"{package}.{name}")
    assert shadowed == []
