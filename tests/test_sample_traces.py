"""The recorded traces hold what their README says, and syncscan finds it: on real traces, without a GPU."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from syncscan.model.finding import Finding, Severity
from tests.each import each
from tests.recordings import analyzed

FOLDER = Path(__file__).parent.parent / "sample_traces"
RECORDED: dict[str, Any] = json.loads((FOLDER / "recorded.json").read_text())
LINES = ("lines", "lines.stacks")

MUST_FIND: dict[str, set[tuple[str, str]]] = {
    "maskedloss.v0": {
        ("nonzero", "loss/non_zero"),
        ("scalar-assign", "loss/index assign"),
        ("unique", "loss/unique"),
        ("boolean-index", "loss/mask"),
        ("index-backward", "loss/mask"),
    },
    "maskedloss.v1": {("unique", "loss/unique"), ("boolean-index", "loss/mask"), ("index-backward", "loss/mask")},
    "maskedloss.v2": {("boolean-index", "loss/mask"), ("index-backward", "loss/mask")},
    "maskedloss.v3": set(),
    "log_item": {("item", "log loss")},
    "pageable": {("to-device", "data")},
    "clean": set(),
    "logged": {("item", "log loss")},
    "logged.kept": set(),
}
"""Per trace: rule and scopes of each finding above info."""


def path(name: str) -> Path:
    return FOLDER / f"{name}.pt.trace.json.gz"


def above_info(name: str) -> list[Finding]:
    return [f for f in analyzed(path(name)).findings if f.severity is not Severity.INFO]


@each("name", RECORDED["traces"])
def test_a_trace_is_the_one_that_was_recorded(name: str) -> None:
    """Never edited by hand, and small."""
    content = path(name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == RECORDED["traces"][name]["sha256"]
    assert len(content) <= 300_000


@each("name", RECORDED["traces"])
def test_the_readme_lists_it(name: str) -> None:
    """With its checksum and size."""
    row = next(line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith(f"| `{name}` |"))
    recorded = RECORDED["traces"][name]
    assert recorded["sha256"] in row
    assert f"{recorded['bytes']:,}" in row


@each("name", RECORDED["traces"])
def test_a_trace_tells_nothing_of_the_machine_s_folders(name: str) -> None:
    """Paths of the repository are relative to it."""
    own = json.loads(gzip.decompress(path(name).read_bytes()))["syncscan"]
    files = {frame[0] for frame in own["lines"]["frames"]}
    assert not [f for f in files if f.startswith("/") and "site-packages" not in f and "/lib/python3" not in f]


@each("name", MUST_FIND)
def test_findings_are_those_of_the_list(name: str) -> None:
    """Neither more nor fewer."""
    assert {(f.rule, "/".join(f.scope)) for f in above_info(name)} == MUST_FIND[name]


def commented_lines() -> dict[int, str]:
    """Line → the comment on it, for each line of the zoo that says that it syncs."""
    lines = (FOLDER / "zoo.py").read_text().splitlines()
    matches = ((n, re.search(r"# (syncs( unseen| in backward)?)$", line)) for n, line in enumerate(lines, 1))
    return {n: match[1] for n, match in matches if match}


def zoo_line(stack: list[list[Any]]) -> int | None:
    """The innermost line in the zoo of a stack that begins with its innermost frame."""
    return next((line for file, line, _ in stack if file.endswith("zoo.py")), None)


@pytest.mark.parametrize("name", LINES)
def test_every_sync_has_its_exact_line(name: str) -> None:
    """The table's rows lie on the lines whose comments say so: in functions, modules, threads, hooks, libraries."""
    table = json.loads(gzip.decompress(path(name).read_bytes()))["syncscan"]["lines"]
    rows = [[table["frames"][i] for i in table["stacks"][row[3]]] for row in table["syncs"]]
    assert {zoo_line(stack) for stack in rows} == set(commented_lines())


@pytest.mark.parametrize("name", LINES)
def test_torch_s_own_debug_mode_warns_of_the_same_lines(name: str) -> None:
    """All lines but those that it can't see agree: a second witness, which knows nothing of the callbacks."""
    seen = {zoo_line(stack) for stack in RECORDED["traces"][name]["warned"]}
    assert seen == {line for line, comment in commented_lines().items() if comment != "syncs unseen"}


@pytest.mark.parametrize("name", LINES)
def test_findings_name_the_exact_lines(name: str) -> None:
    """A sync in backward is given the line of the forward op, not that of `backward()`."""
    sources = [f.source for f in analyzed(path(name)).findings if f.source is not None]
    assert all(source.exact for source in sources)
    matches = {source.line for source in sources if source.file.endswith("zoo.py")}
    assert matches == {line for line, comment in commented_lines().items() if comment != "syncs in backward"}


def test_the_unprofiled_step_is_shorter_than_the_recorded_one() -> None:
    """Which is why capture measures it."""
    for name in MUST_FIND:
        step = analyzed(path(name)).step
        own = json.loads(gzip.decompress(path(name).read_bytes()))["syncscan"]
        assert 0 < own["unprofiled_step_us"] <= step.observed_us * 1.02


def test_the_tutorial_s_pair_is_the_turn_in_the_middle() -> None:
    """Sorted by their ratios; both recordings are of one device, and as they were written."""
    recorded = json.loads((FOLDER / "pair" / "recorded.json").read_text())
    turns = sorted(recorded["turns_ms"], key=lambda times: times[1] / times[0])
    for name, ms in zip(("before", "after"), turns[len(turns) // 2], strict=True):
        content = (FOLDER / "pair" / f"{name}.pt.trace.json.gz").read_bytes()
        assert hashlib.sha256(content).hexdigest() == recorded["traces"][name]["sha256"]
        assert recorded["traces"][name]["unprofiled_step_ms"] == ms
        assert recorded["gpu"] in analyzed(FOLDER / "pair" / f"{name}.pt.trace.json.gz").trace.info.devices


def test_the_front_page_s_recording_has_its_source() -> None:
    """A first report shows the line, and says that the wait is safe to remove: its program stays where it ran."""
    (finding,) = above_info("logged")
    assert finding.excerpt is not None
    assert "history.append(loss.item())" in "\n".join(finding.excerpt.lines)
