"""A project's limits are kept or not, and what is exempt is exempt for a reason."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from syncscan import api, gate
from syncscan.api import analyze_trace
from syncscan.errors import UsageError
from syncscan.gate import check_report
from syncscan.gate.check_report import flagged_limits
from syncscan.gate.verdict import Allowance, By, CheckVerdict, Limit, Rules
from syncscan.report import github, terminal
from tests.builder import TraceBuilder
from tests.each import each
from tests.gate.story import Sync, program, trace_of

ITEM = Sync(line=10, file="train.py")
NONZERO = Sync("aten::nonzero", scope="mask", line=20, file="train.py", waits=200)
TODAY = datetime.date(2026, 11, 22)
IDS = tuple(rule.id for rule in api.rules())


def check(*limits: Limit, allowed: tuple[Allowance, ...] = (), baseline: gate.Baseline = gate.EMPTY) -> CheckVerdict:
    rules = Rules(limits=limits, allowed=allowed)
    return gate.check(program(ITEM, NONZERO), rules, baseline, TODAY)


@each(
    ("limit", "words"),
    [
        (Limit(syncs=1), "the step: 2 syncs per step; the limit is 1"),
        (Limit(wait_ms=0.1), "waits 207 µs"),
        (Limit(recoverable=0.0), "removing its syncs would save"),
        (Limit(by="scope", glob="ma*", syncs=0), "scope ma*: 1 sync per step; the limit is 0"),
        (Limit(by="rule", glob="nonzero", wait_ms=0.1), "rule nonzero: waits"),
        (Limit(by="phase", glob="other", syncs=0.5), "phase other: 2 syncs"),
        (Limit(by="owner", glob="user", syncs=0), "owner user: 2 syncs"),
    ],
)
def test_a_limit_that_is_not_kept_says_both_numbers(limit: Limit, words: str) -> None:
    """And names the findings that make it up."""
    (violation,) = check(limit).violations
    assert words in violation.sentence
    assert violation.findings


@pytest.mark.parametrize(
    "limit",
    [
        Limit(syncs=2),
        Limit(wait_ms=1),
        Limit(recoverable=1.0),
        Limit(by="scope", glob="other", syncs=0, wait_ms=0, recoverable=0),
        Limit(by="owner", glob="framework", syncs=0),
    ],
)
def test_a_limit_that_is_kept_passes(limit: Limit) -> None:
    """Also where it is reached to the hair, or is of nothing that there is."""
    assert check(limit).passed


def test_without_limits_no_sync_is_allowed() -> None:
    """A gate that nobody told anything isn't one that is always open."""
    assert not check().passed
    assert gate.check(program(), Rules(limits=())).passed


@each(
    ("entry", "rules"),
    [
        ({"rule": "item"}, ["nonzero"]),
        ({"scope": "ma*"}, ["item"]),
        ({"scope": "loss", "rule": "nonzero"}, ["nonzero", "item"]),
        ({"line": "train.py:20"}, ["item"]),
        ({"line": "train.py:2*"}, ["item"]),
        ({"line": "*.py"}, []),
        ({"op": "aten::non*"}, ["item"]),
    ],
)
def test_the_allow_list_exempts_what_it_names(entry: dict[str, Any], rules: list[str]) -> None:
    """All that an entry gives has to match."""
    verdict = check(allowed=(Allowance(reason="logged", **entry),))
    assert [f.rule for f in verdict.counted] == rules
    assert {e.by for e in verdict.exempt} <= {By.ALLOW_LIST}


def test_an_entry_counts_to_its_last_day() -> None:
    """Then its syncs count again, and the report says why; one that has no selector is told too."""
    yesterday = TODAY - datetime.timedelta(1)
    entries = (
        Allowance(rule="item", reason="until then", expires=yesterday),
        Allowance(rule="nonzero", reason="known", expires=TODAY),
        Allowance(scope="nowhere", reason="old"),
    )
    verdict = check(allowed=entries)
    assert [f.rule for f in verdict.counted] == ["item"]
    (expired,), (unused,) = verdict.notes, verdict.unused
    assert "rule item expired on 2026-11-21 (until then)" in expired
    assert "scope nowhere matches no sync here" in unused


def test_a_comment_on_the_line_exempts_its_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reason, and from the source that a saved analysis keeps as well."""
    monkeypatch.chdir(tmp_path)
    lines = ["import torch", "", "def step(x):", *["    x = x + 1"] * 16]
    lines[9] = "    y = x.item()  # syncscan: allow[item] logged every step"
    lines.append("    # syncscan: allow[nonzero, unique]: the shape is needed")
    lines[19:21] = ["    z = x.nonzero()  # syncscan: allow[item] not this one"]
    Path("train.py").write_text("\n".join(lines) + "\n")
    verdict = check()
    assert [(e.of.rule, e.by, e.reason) for e in verdict.exempt] == [("item", By.COMMENT, "logged every step")]
    assert verdict.notes == ("train.py:20: the comment allows item, but this is nonzero.",)
    saved = tmp_path / "x.syncscan.json"
    saved.write_text(program(ITEM, NONZERO).to_saved())
    Path("train.py").unlink()
    again = gate.check(api.analyze(saved), Rules(limits=()))
    assert [e.of.rule for e in again.exempt] == ["item"]


def test_a_comment_that_allows_nothing_any_more_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each file that the trace names and that is at hand, however the trace calls it; those of libraries aren't."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(
        "\n" * 9 + "x.item()  # syncscan: allow[item] logged\ny = 1  # syncscan: allow[item] was\n"
    )
    Path("site-packages").mkdir()
    for file in ("main.py", "site-packages/library.py"):
        Path(file).write_text("# syncscan: allow[nonzero] the shape\n")
    t = trace_of(ITEM)
    t.exact(
        900, ("site-packages/library.py", 1, "f"), (str(tmp_path / "train.py"), 30, "<module>"), ("main.py", 3, "g")
    )
    verdict = gate.check(analyze_trace(t.trace()), Rules(limits=()))
    assert [e.reason for e in verdict.exempt] == ["logged"]
    assert [text.split(" stale comment ") for text in sorted(verdict.stale)] == [
        ["main.py:2:", "# syncscan: allow[nonzero] the shape: no such sync here. Remove it."],
        ["train.py:11:", "# syncscan: allow[item] was: no such sync here. Remove it."],
    ]


def test_comments_are_looked_for_below_source_roots(tmp_path: Path) -> None:
    """As excerpts are."""
    (tmp_path / "train.py").write_text("\n" * 9 + "x.item()  # syncscan: allow[item] logged\n")
    analysis = program(ITEM)
    assert gate.check(analysis, Rules(limits=())).exempt == ()
    assert len(gate.check(analysis, Rules(limits=()), source_roots=[str(tmp_path)]).exempt) == 1


def test_the_baseline_exempts_what_was_there_before(tmp_path: Path) -> None:
    """As often as it was, and though lines have moved; what it knows and is gone is told."""
    baseline = gate.baseline_of([program(ITEM, Sync("aten::unique_dim", scope="x", line=40))])
    path = tmp_path / "baseline.json"
    path.write_text(gate.text_of(baseline))
    assert gate.read_baseline(path) == baseline
    moved = Sync(line=14, file="train.py")
    verdict = gate.check(program(moved, NONZERO), Rules(limits=()), baseline)
    assert [f.rule for f in verdict.counted] == ["nonzero"]
    assert [(e.of.rule, e.by) for e in verdict.exempt] == [("item", By.BASELINE)]
    assert "no longer occurs" in verdict.unused[0]
    twice = [Sync(file="train.py")] * 2
    assert gate.check(program(*twice), Rules(limits=()), gate.baseline_of([program(twice[0])])).counted


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": "syncscan.baseline/2", "known": []}', '{"known": 1}', "[" * 9999]
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    """With a sentence."""
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="not a baseline that this version can read"):
        gate.read_baseline(path)


def test_a_trace_in_which_nothing_can_be_seen_does_not_pass() -> None:
    """A recording of a CPU has no syncs, whatever the program does on a GPU."""
    t = TraceBuilder(vendor="none")
    for start in t.steps(2, lasts=100):
        t.op("aten::item", start + 1, start + 5)
    (violation,) = gate.check(api.analyze_trace(t.trace()), Rules(limits=())).violations
    assert "nothing was checked" in violation.sentence


def test_a_trace_of_kernels_alone_does_not_pass() -> None:
    """Without runtime calls it shows no wait of the host, however many there were."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.launch(at=start, lasts=50)
    t.events = [event for event in t.events if event["cat"] == "kernel"]
    (violation,) = gate.check(api.analyze_trace(t.trace()), Rules(limits=())).violations
    assert "nothing was checked" in violation.sentence


def test_a_wait_of_unknown_length_is_called_one() -> None:
    """The device work that the host waited for isn't in the trace."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100):
        t.sync("aten::item", at=start + 1, wait=50)
    t.events = [event for event in t.events if event["cat"] not in ("kernel", "gpu_memcpy")]
    verdict = gate.check(api.analyze_trace(t.trace()), Rules(limits=()))
    texts = [
        terminal.drawn(check_report.blocks([verdict], "defaults")),
        github.drawn([flagged_limits(verdict, "defaults")]),
    ]
    assert ["for an unknown time" in " ".join(text.split()) for text in texts] == [True, True]


CONFIG = """
[tool.syncscan]
syncs = 2
recoverable = "2%"
baseline = "known.json"
[[tool.syncscan.limit]]
scope = "loss*"
wait-ms = 1
[[tool.syncscan.allow]]
rule = "item"
line = "train.py:*"
reason = "it is logged"
expires = 2027-01-31
"""


def config(text: str, folder: Path) -> Rules:
    (folder / "pyproject.toml").write_text(text)
    return gate.read_config(folder / "pyproject.toml", IDS)


def test_the_rules_stand_in_pyproject(tmp_path: Path) -> None:
    """The nearest one upwards that has any; paths in it are beside it."""
    rules = config(CONFIG, tmp_path)
    assert rules.limits == (Limit(syncs=2, recoverable=0.02), Limit(by="scope", glob="loss*", wait_ms=1))
    assert rules.allowed == (
        Allowance(rule="item", line="train.py:*", reason="it is logged", expires=datetime.date(2027, 1, 31)),
    )
    assert rules.baseline == str(tmp_path / "known.json")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert gate.found_from(inner) == tmp_path / "pyproject.toml"


@each(
    ("text", "words"),
    [
        ("[tool.syncscan]\nsync = 1", "Did you mean 'syncs'?"),
        ("[tool.syncscan]\nwait_ms = 1", "Did you mean 'wait-ms'?"),
        ("[tool.syncscan]\nsyncs = 'two'", "Expected `float"),
        ("[tool.syncscan]\nsyncs = -1", ">= 0"),
        ("[tool.syncscan]\nrecoverable = 'some'", "not a share of a step"),
        ("[tool.syncscan]\nrecoverable = 3", "not a share of a step"),
        ("[tool.syncscan]\nallow = 1", "Expected `array`"),
        ("[[tool.syncscan.limit]]\nsyncs = 1", "needs exactly one of scope"),
        ("[[tool.syncscan.limit]]\nscope = 'a'\nrule = 'item'\nsyncs = 1", "needs exactly one of scope"),
        ("[[tool.syncscan.limit]]\nscope = 'a'", "has no limit"),
        ("[[tool.syncscan.limit]]\nrule = 'itme'\nsyncs = 1", "Did you mean 'item'?"),
        ("[[tool.syncscan.limit]]\nphase = 'forwards'\nsyncs = 1", "Did you mean 'forward'?"),
        ("[[tool.syncscan.allow]]\nrule = 'item'", "has no reason"),
        ("[[tool.syncscan.allow]]\nreason = 'so'", "has no selector"),
        ("[[tool.syncscan.allow]]\nrule = 'item'\nreason = 'so'\nexpire = 2027-01-01", "Did you mean 'expires'?"),
        ("[[tool.syncscan.allow]]\nrule = 'item'\nreason = 'so'\nexpires = 'soon'", "Invalid RFC3339"),
        ("[tool]\nsyncscan = 1", "is not a table"),
        ("[tool.other]", "has no [tool.syncscan]"),
        ("[tool", "not valid TOML"),
    ],
)
def test_what_means_nothing_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """With the file's name and what was meant."""
    with pytest.raises(UsageError) as raised:
        config(text, tmp_path)
    assert words in str(raised.value)
    assert "pyproject.toml" in raised.value.message


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("scope:loss*,syncs=0", Limit(by="scope", glob="loss*", syncs=0)),
        ("recoverable=2%,wait-ms=1", Limit(recoverable=0.02, wait_ms=1)),
        ("rule:item, wait-ms=1.5, recoverable=2%", Limit(by="rule", glob="item", wait_ms=1.5, recoverable=0.02)),
    ],
)
def test_a_limit_as_an_option(text: str, limit: Limit) -> None:
    """Says what an entry of the file says."""
    assert gate.limit_of(text, IDS) == limit


@each("text", ["", "syncs", "scope:,syncs=0", "scope:a", "scope:a,syncs", "scope:a,syncs=x",
                                  "scope:a,sync=1", "scope:a,syncs=-1", "line:a,syncs=1"])  # fmt: skip
def test_what_is_no_limit_is_refused(text: str) -> None:
    """With a sentence that shows one."""
    with pytest.raises(UsageError):
        gate.limit_of(text, IDS)
