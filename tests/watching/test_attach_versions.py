"""Processes of other versions of Python are captured and watched from this one, and go on as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from syncscan.watching.attach import Order, attached
from syncscan.watching.code_injection import process_of
from syncscan.watching.watch_file import read
from tests.until import until
from tests.watching.test_attach import TRAIN, settled, state, steps_on

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
GIVEN = os.environ.get("SYNCSCAN_TEST_PYTHONS", "").split(os.pathsep)
"""Paths of interpreters to try before those of the PATH."""


def interpreter(version: str) -> str:
    """Return an interpreter of a version that can import torch and what syncscan needs; skip where there is none."""
    check = f"import sys, torch, msgspec, pandas; raise SystemExit('%d.%d' % sys.version_info[:2] != '{version}')"
    for path in (*GIVEN, shutil.which(f"python{version}") or ""):
        if path and subprocess.run([path, "-c", check], capture_output=True).returncode == 0:
            return path
    pytest.skip(f"there is no Python {version} with torch here")


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_process_of_another_version(version: str, tmp_path: Path) -> None:
    """Each action in turn; then no hook and no thread is left, and it steps on."""
    path = interpreter(version)
    if version != "3.14" and shutil.which("gdb") is None:
        pytest.skip("needs gdb before Python 3.14")
    (tmp_path / "job.py").write_text(TRAIN)
    job = subprocess.Popen([path, "job.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        until((tmp_path / "state").exists)
        process = process_of(job.pid)
        assert process.version == tuple(map(int, version.split(".")))
        with attached(process, Order("capture", str(tmp_path / "out"), steps=2, warmup=1)) as answers:
            done = answers.until("done")
        assert [Path(trace).exists() for trace in done["done"]] == [True]
        with attached(process, Order("watch", str(tmp_path / "out"), interval=0.5)) as answers:
            (watched,) = answers.until("done")["done"]
        until(lambda: read(Path(watched)).windows)
        with attached(process, Order("stop")) as answers:
            answers.until("done")
        assert read(Path(watched)).windows
        assert settled(tmp_path)[1:] == [0, 0]
        steps_on(tmp_path)
        assert state(tmp_path)[1:] == [0, 0]
        assert job.poll() is None
    finally:
        job.kill()
        job.wait()
