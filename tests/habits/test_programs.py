"""Facts about the recorded programs: they run, their table names what exists, their files are what they were."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import pytest

from tests.each import each

torch = pytest.importorskip("torch")
PROGRAMS = Path(__file__).parent.parent.parent / "sample_traces" / "programs"


@pytest.fixture(scope="module")
def catalogue():
    before = list(sys.path)
    sys.path.insert(0, str(PROGRAMS))
    import catalogue as loaded

    yield loaded
    sys.path[:] = before


def names():
    sys.path.insert(0, str(PROGRAMS))
    import catalogue as loaded

    sys.path.remove(str(PROGRAMS))
    return list(loaded.VARIANTS)


NEEDS_MORE = re.compile(
    r"(copies\.(pinned|inline_pin|prefetched)|pipeline\.(pipelined|needless)|augmentation\..*|inference\..*"
    r"|tips\.graph|parallel\..*)"
)
"""Programs that need a GPU, or torchvision."""


IN_SMALL = [n for n in names() if not NEEDS_MORE.fullmatch(n)]
QUICK = {name.partition(".")[0]: name for name in reversed(IN_SMALL)}.values()
"""The first of each family."""


@each("name", IN_SMALL, slow=lambda name: name not in QUICK)
def test_a_program_runs_in_small_on_a_cpu(catalogue, name):
    """Two steps of the least size."""
    from setting import Setting

    step = catalogue.VARIANTS[name](Setting("cpu", small=True))
    step()
    step()


def test_each_name_in_the_table_is_a_program(catalogue):
    """The README's claims can be measured by what it names."""
    text = (PROGRAMS / "README.md").read_text()
    families = "|".join(sorted({n.split(".")[0] for n in catalogue.VARIANTS}))
    named = set(re.findall(rf"`((?:{families})\.\w+)`", text)) - {"inference.py"}
    assert len(named) > 20
    assert named <= set(catalogue.VARIANTS)


def test_the_recordings_are_what_they_were():
    """Each has an entry with its checksum, none is larger than 300 KB."""
    entries = json.loads((PROGRAMS / "recorded" / "recorded.json").read_text())["traces"]
    files = {p.name.removesuffix(".pt.trace.json.gz"): p for p in (PROGRAMS / "recorded").glob("*.gz")}
    assert set(files) == set(entries)
    for name, path in files.items():
        content = path.read_bytes()
        assert hashlib.sha256(content).hexdigest() == entries[name]["sha256"], name
        assert len(content) <= 300_000


TABLE = {
    "masked_loss.v0": "283.9",
    "masked_loss.v3": "199.0",
    "copies.pageable": "16.9",
    "copies.pinned": "5.56",
    "copies.prefetched": "2.87",
    "loader.enough": "13.6",
    "tips.fp32": "12.8",
    "tips.tf32": "3.24",
    "tips.bf16": "2.63",
    "tips.item": "2.87",
    "tips.empty_cache": "4.12",
    "tips.graph": "1.59",
}


@each("name", TABLE)
def test_the_table_says_what_was_measured(name):
    """Its figures are the means in measured.json, rounded."""
    steps = json.loads((PROGRAMS / "measured.json").read_text())["steps"]
    shown = TABLE[name]
    digits = len(shown.partition(".")[2])
    assert f"{1000 / steps[name]['steps_per_second']:.{digits}f}" == shown
    assert shown in (PROGRAMS / "README.md").read_text()
