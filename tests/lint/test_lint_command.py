"""`syncscan lint`: its formats, exceptions, filters and exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import UsageError

CODE = """\
import torch
from torch.profiler import record_function

def train(model, opt, loader):
    for step, (x, y) in enumerate(loader):
        loss = model(x, y)
        loss.backward()
        opt.step()
        with record_function("log"):
            print(loss.item())
        if step % 10 == 0:
            torch.cuda.synchronize()
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(CODE)
    return tmp_path / "train.py"


def lint(*args: str, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(group, ["lint", *args], input=stdin)
    assert result.exit_code == code, result.output
    return result


def test_a_warning_says_where_and_why(file: Path) -> None:
    """Line, function, loop, scope and condition; and what it can't know."""
    text = lint("train.py").stdout
    assert "2 possible syncs in 1 of 1 file; 1 runs rarely." in text
    assert "train.py:10:19: medium [item] .item() waits for a number" in text
    assert "In a training loop (line 5). Scope log." in text
    assert "and runs only where step % 10 == 0" in text
    assert "types and devices are unknown" in " ".join(text.split())


def test_json_has_the_keys_of_findings(file: Path) -> None:
    """As far as a warning has them; nothing of costs."""
    document = json.loads(lint("train.py", "--format", "json").stdout)
    assert (document["schema"], document["files"]) == ("syncscan.lint/1", 1)
    item, sync = document["guesses"]
    assert item["source"] | {"cell": None} == {
        "file": "train.py", "line": 10, "column": 19, "end_line": 10, "cell": None, "function": "train",
        "code": "loss.item()",
    }  # fmt: skip
    assert (item["rule"], item["cause"], item["severity"], item["scope"]) == ("item", "READBACK", "medium", ["log"])
    assert (sync["rule"], sync["severity"]) == ("explicit-sync", "low")
    assert {"title", "why", "fix", "when_fine", "confidence", "name", "because", "place"} <= set(item)


def test_other_formats_name_the_line(file: Path) -> None:
    """GitHub's annotations, SARIF, CSV and Markdown."""
    assert (
        "::warning file=train.py,line=10,endLine=10,col=19,title=possible sync%3A"
        in lint("train.py", "--format", "github").stdout
    )
    log = json.loads(lint("train.py", "--format", "sarif").stdout)["runs"][0]
    assert [(r["ruleId"], r["level"]) for r in log["results"]] == [("item", "warning"), ("explicit-sync", "note")]
    rows = list(csv.DictReader(lint("train.py", "--format", "csv").stdout.splitlines()))
    assert [(row["rule"], row["line"]) for row in rows] == [("item", "10"), ("explicit-sync", "12")]
    assert "- `train.py:10:19`: medium \\[item\\] .item()" in lint("train.py", "--format", "markdown").stdout


def test_exit_codes(file: Path) -> None:
    """A warning fails nothing unless asked to; what was named and can't be read does."""
    lint("train.py")
    lint("train.py", "--fail-on", "guess", code=1)
    lint("train.py", "--fail-on", "medium", "--ignore", "item")
    lint("train.py", "--fail-on", "medium", "--select", "item", code=1)
    assert "gone.py can't be read" in lint("gone.py", "train.py", code=3).stderr
    lint(code=2)


def test_filters_are_counted_and_checked(file: Path) -> None:
    """The report counts hidden warnings, and a rule that doesn't exist is an error."""
    assert "1 warning hidden by --select or --ignore." in lint("train.py", "--ignore", "it*").stdout
    result = CliRunner().invoke(group, ["lint", "train.py", "--select", "itm"])
    assert isinstance(result.exception, UsageError)


def test_the_project_allows(file: Path) -> None:
    """Entries of [[tool.syncscan.allow]] with a rule, a line or a scope; an expired one is said."""
    entries = "[[tool.syncscan.allow]]\nreason = 'it logs'\nscope = 'log'\n"
    entries += "[[tool.syncscan.allow]]\nreason = 'old'\nline = 'train.py:12'\nexpires = 2020-01-01\n"
    file.with_name("pyproject.toml").write_text(f"[tool.syncscan]\n{entries}")
    result = lint("train.py", "--format", "json")
    document = json.loads(result.stdout)
    assert [g["rule"] for g in document["guesses"]] == ["explicit-sync"]
    assert [(a["rule"], a["by"], a["reason"]) for a in document["allowed"]] == [("item", "allow-list", "it logs")]
    assert "expired on 2020-01-01" in result.stderr


def test_a_comment_that_allows_nothing_is_reported(file: Path) -> None:
    """Without a reason, without a rule or for another rule it allows nothing."""
    for comment, why in (("allow[item]", "no reason"), ("allow why not", "no rule"), ("allow[cpu] x", "another rule")):
        file.write_text(CODE.replace("loss.item())", f"loss.item())  # syncscan: {comment}"))
        assert why in lint("train.py").stderr
    file.write_text(CODE.replace("loss.item())", "loss.item())  # syncscan: allow[item] once an hour"))
    assert "1 warning allowed by" in lint("train.py").stdout


def test_standard_input(file: Path) -> None:
    """For editors."""
    assert "-:10:19: medium [item]" in lint("-", stdin=CODE).stdout


def test_hostile_names_are_shown_and_not_obeyed(file: Path) -> None:
    """Escape sequences and line ends in a scope's name reach no terminal, nor GitHub's runner."""
    file.write_text(CODE.replace('"log"', r'"\x1b[31m\n::error::x"'))
    assert "\x1b" not in lint("train.py").stdout
    assert "\n::error" not in lint("train.py", "--format", "github").stdout
