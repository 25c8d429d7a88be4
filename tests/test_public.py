"""What `import syncscan` promises."""

from __future__ import annotations

import subprocess
import sys

import syncscan


def test_public_names_are_sorted_and_there() -> None:
    """`__all__` is sorted, and every name in it can be had."""
    assert sorted(syncscan.__all__) == syncscan.__all__
    assert [name for name in syncscan.__all__ if not hasattr(syncscan, name)] == []


def test_importing_costs_nothing() -> None:
    """Neither the import nor `--help` loads numpy, pandas, rich or torch."""
    heavy = ("numpy", "pandas", "rich", "torch", "msgspec")
    code = f"import sys, syncscan, syncscan.cli; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_analysing_never_imports_torch() -> None:
    """Loading, every stage and every renderer work without torch."""
    code = "import sys, syncscan.api; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
