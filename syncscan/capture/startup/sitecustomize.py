"""Python runs this when a process of a captured command starts: the environment's own one runs, then syncscan's.

The process stays as it would be without: this folder leaves the path, nothing is imported but what the program imports,
and only when it imports torch is it looked whether it steps an optimizer.
"""

# ruff: noqa: PTH100, PTH118, PTH120  (pathlib takes longer to import than all else that is done here)

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import PathFinder


def _others() -> None:
    """Run the `sitecustomize` that would have run without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None or spec.origin == os.path.abspath(__file__):
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_BEGINS = "SYNCSCAN_BEGINS"
"""Environment variable with the modules whose `begin` is to be called, by commas (`captured_command.with_startup`)."""


def _begin_with_torch(name: str) -> None:
    """Have a module of syncscan begin once the process imports torch: it may be a launcher, or a loader's worker."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        if importlib.util.find_spec("syncscan") is None:
            _load(package)
        from syncscan.patches import when_imported

        when_imported("torch", lambda torch: _begin(name))
    except Exception as error:
        _explain(error)


def _begin(name: str) -> None:
    try:
        importlib.import_module(name).begin()
    except Exception as error:  # the program's import of torch must not fail by it
        _explain(error)


def _explain(error: Exception) -> None:
    sys.stderr.write(
        f"syncscan: this process isn't followed ({type(error).__name__}: {error}):"
        f" its environment, {sys.prefix}, may lack what syncscan needs.\n"
    )


def _load(package: str) -> None:
    """Import syncscan from a folder that isn't on the path."""
    spec = importlib.util.spec_from_file_location("syncscan", os.path.join(package, "__init__.py"))
    if spec is None or spec.loader is None:
        raise ImportError(package)
    module = sys.modules["syncscan"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


try:
    _others()
finally:  # also where the environment's own has failed, which Python then says
    for _module in filter(None, os.environ.get(_BEGINS, "").split(",")):
        _begin_with_torch(_module)
