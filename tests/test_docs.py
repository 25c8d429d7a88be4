"""The README and the pages in docs are true: their commands run, their code runs, their tables are printed."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

import syncscan
from benchmarks import comparison
from docs import generate
from syncscan import api
from syncscan.cli import all_commands, group
from syncscan.errors import SyncscanError
from syncscan.fixing.rewrites import section as fixes
from syncscan.model.step_times import StepTimes
from tests import schemas
from tests.each import each
from tests.pages import DOCS, PAGES, REASONS, ROOT, Block, blocks, commands

BLOCKS = list(blocks())
RUN = [block for block in BLOCKS if block.reason is None and not block.mark.startswith("run:")]
TERMINALS = [block for block in RUN if block.language == "console"]
SHOWN = sorted({command for block in TERMINALS for command in commands(block)})
ONCE = {re.sub(r"( train\.py)( --epochs \d+)?( +#.*)?$", r"\1", c): c for c in SHOWN if c.startswith("syncscan ")}
"""Commands that differ in the script's own arguments alone are run once."""
EXITS = re.compile(r"# exits (\d)")
TORCH = ("profile", "time", "dryrun", "fix")
"""Commands that run a program."""
LIMIT = 8_000
"""Bytes of the README: what one reads to its end."""

TRAIN = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(40):
    loss = model(torch.randn(16, 8, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

def infer():
    return model(torch.randn(16, 8, device=device))
"""


GENERATED = functools.cache(generate.pages)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a reader has it: a training script and the sample traces."""
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "sample_traces").symlink_to(ROOT / "sample_traces")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def invoked(words: list[str], **environment: str) -> Result:
    """A command of syncscan in this process, with the exit code that it would have."""
    result = CliRunner().invoke(group, words, env=environment)
    if isinstance(result.exception, SyncscanError):
        pytest.fail(f"{shlex.join(words)}: {result.exception}")
    return result


FIRST = {command for block in TERMINALS if block.page == ROOT / "README.md" for command in commands(block)}
"""Commands of the README, which are tried in each run of the tests."""


@pytest.mark.parametrize(
    "command", [c if c in FIRST else pytest.param(c, marks=pytest.mark.slow) for c in ONCE.values()]
)
def test_a_command_works(command: str, desk: Path, own_main_program: None, request: pytest.FixtureRequest) -> None:
    """It ends as the page says, and leaves something on stdout or says what it wrote; JSON follows its schema."""
    words = shlex.split(command, comments=True)[1:]
    if words[0] in TORCH:
        pytest.importorskip("torch")
    if words[0] == "fix":
        request.getfixturevalue("warm")
    if words[0] == "profile":
        words[1:1] = ["--sample", "0"]
    result = invoked(words)
    assert result.exit_code == int((EXITS.findall(command) or [0])[0]), result.output
    assert result.stdout.strip() or "Wrote" in result.stderr
    if "json" in words and "-o" not in words:
        follows_its_schema(json.loads(result.stdout))


def follows_its_schema(document: dict[str, Any]) -> None:
    """By what the document says it is."""
    names_of = {schemas.version(name): name for name in schemas.KINDS if name != "saved"}
    jsonschema.validate(document, schemas.schema(names_of[document["schema"]]))


@pytest.mark.parametrize("command", [c for c in SHOWN if not c.startswith(("syncscan ", "python -m benchmarks."))])
def test_other_commands_are_targets_of_make(command: str) -> None:
    """Which continuous integration runs."""
    make, target, *_ = shlex.split(command, comments=True)
    assert make == "make"
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize(
    "block", [b for b in RUN if b.text.startswith("$ ") and b.language == "text"], ids=lambda b: b.name
)
def test_what_is_quoted_is_printed(block: Block, desk: Path, request: pytest.FixtureRequest) -> None:
    """A block that shows a command with its output shows how that output begins, line for line."""
    command, output = block.text[2:].split("\n", 1)
    if command.startswith("syncscan fix"):
        request.getfixturevalue("warm")
    printed = invoked(shlex.split(command)[1:], COLUMNS="100").stdout
    assert [line.rstrip() for line in printed.splitlines()][: output.count("\n")] == output.splitlines()


def table_of(command: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rows that a benchmark prints."""
    _, _, module, *arguments = shlex.split(command)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    monkeypatch.chdir(ROOT)
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        runpy.run_module(module, run_name="__main__")
    return printed.getvalue().splitlines()


MEASURED = (
    DOCS / "how-well.md",
    ROOT / "README.md",
    ROOT / "benchmarks" / "joint" / "states.md",
    ROOT / "benchmarks" / "projected.md",
)
TABLES = [
    table
    for page in MEASURED
    for table in re.findall(r"<!-- table: (.*?) -->\n(.*?)\n<!-- /table -->", page.read_text(), re.S)
]


@pytest.mark.parametrize(
    ("command", "table"),
    [pytest.param(*row, marks=[pytest.mark.slow] * ("public" not in row[0]), id=row[0]) for row in TABLES],
)
def test_a_table_of_misses_is_what_its_command_prints(
    command: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row for row; the figures above that of projections are the command's last lines, and the README's."""
    printed = table_of(command, monkeypatch)
    assert [line for line in printed if line.startswith("|")] == table.splitlines()
    assert command in SHOWN
    summary = re.findall(r"^(?:all syncs|every case): .*?([\d.]+)%.*?([\d.]+)%$", "\n".join(printed), re.M)
    if summary:
        page = (DOCS / "how-well.md").read_text()
        text = page[page.index("19 removals") : page.index("Without the unprofiled step's time")]
        assert re.findall(r"([\d.]+) %(?:, 90th percentile| and) ([\d.]+) %", text) == summary
        assert "median error {} %, 90th percentile {} %".format(*summary[-1]) in (ROOT / "README.md").read_text()
    for median, worst in re.findall(r"median error ([\d.]+)%, worst ([\d.]+)%", "\n".join(printed)):
        text = f"off by {float(median):.1f} % of the step at the median, {float(worst):.1f} % at worst"
        assert text in (ROOT / "README.md").read_text()


def test_every_benchmark_command_of_a_page_prints_a_table_of_it() -> None:
    """So that none of them is only shown."""
    assert {c for c in SHOWN if c.startswith("python -m benchmarks.")} == {command for command, _ in TABLES}


def test_what_the_debug_mode_is_reported_to_have_warned_of_was_recorded() -> None:
    """One line of the step that gains, six of the one that gains nothing."""
    row = next(r for r in (DOCS / "comparison.md").read_text().splitlines() if r.startswith("| **sync debug mode**"))
    single, six = (
        list(comparison.sync_debug_mode(Path(f"{name}.pt.trace.json.gz"))) for name in ("logged", "maskedloss.v0")
    )
    assert (len(single), len(six)) == (1, 6)
    assert "| one line, `logged_step.py:47` | six lines |" in row
    assert single[0].startswith("capture/logged_step.py:47 ")


def names() -> dict[str, Any]:
    """Define what the pages' code uses: a program of the reader's."""
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def train(batch: Any) -> Any:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    class Writer:
        add_scalar = staticmethod(lambda *_: None)

    batches = [torch.ones(4, 8) for _ in range(30)]
    loss = train(batches[0])
    return {
        "syncscan": syncscan, "torch": torch, "model": model, "batches": batches, "batch": batches[0], "train": train,
        "loss": loss, "log": lambda *_: None, "writer": Writer(), "train_step": lambda: train(batches[0]),
        "tokens": [1], "decode": lambda _: None,
        "analysis": syncscan.analyze(ROOT / "sample_traces" / "log_item.pt.trace.json.gz"),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({b.page for b in RUN if b.language == "python"}), ids=lambda p: p.stem)
@pytest.mark.filterwarnings("ignore:No GPU here")
def test_the_code_of_a_page_runs(page: Path, desk: Path) -> None:
    """The code runs from its top to its end, as a reader goes through it."""
    there = names()
    for block in (b for b in RUN if b.page == page and b.language == "python"):
        exec(compile(block.text, block.name, "exec"), there)


@pytest.mark.parametrize("block", [b for b in RUN if b.language == "toml"], ids=lambda b: b.name)
def test_limits_in_a_page_are_limits(block: Block, desk: Path) -> None:
    """`syncscan check` takes them, once their baseline was written as the page says."""
    (desk / "pyproject.toml").write_text(block.text)
    trace = "sample_traces/clean.pt.trace.json.gz"
    assert invoked(["check", trace, "--update-baseline"]).exit_code == 0
    assert invoked(["check", trace]).exit_code == 0


def test_every_other_block_is_what_it_says() -> None:
    """JSON and YAML are; what a diff takes and gives is in the file that it names."""
    for block in RUN:
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "yaml":
            yaml.safe_load(block.text)
        elif block.language == "diff":
            file = (ROOT / block.mark.removeprefix("of: ")).read_text()
            assert [line for line in block.text.splitlines() if line[1:].strip() not in file] == []


def test_every_block_is_run_or_says_why_not() -> None:
    """With a reason that is known, and words behind it; a language that nothing here runs has to say so."""
    languages = {"console", "python", "toml", "json", "yaml", "diff"}
    for block in BLOCKS:
        if block.language.startswith("{") or block.mark.startswith("run:"):
            continue
        if block.reason is None:
            assert block.language in languages or (block.language == "text" and block.text.startswith("$ ")), block.name
        else:
            assert block.reason in REASONS, block.name
            assert len(block.mark.split(":", 2)[2].strip()) > 10, block.name
    assert len(SHOWN) > 25


@each("block", [b for b in BLOCKS if "tests/" in b.mark], ids=lambda b: b.name)
def test_a_mark_names_a_test_that_is_there(block: Block) -> None:
    """Who runs a block instead."""
    assert [path for path in re.findall(r"tests/[\w/.]+", block.mark) if not (ROOT / path).exists()] == []


def test_the_readme_is_read_to_its_end() -> None:
    """It is short, and its links lead somewhere."""
    assert len((ROOT / "README.md").read_bytes()) <= LIMIT


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts and MyST make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@each("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *PAGES[1:]], ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """To a file that is there or will be generated, and to a heading in it."""
    generated = {DOCS / "generated" / name for name in GENERATED()}
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)):
        if link.startswith(("http", "mailto")):
            continue
        path, _, anchor = link.partition("#")
        target = (DOCS / path[1:] if path.startswith("/") else page.parent / path).resolve() if path else page
        assert target.exists() or target in generated, link
        if anchor and target.suffix == ".md" and target.name != "benchmarks.md":
            assert anchor in anchors(target), link


def test_there_is_a_page_for_each_rule_command_and_schema() -> None:
    """A rule's page is the text of `syncscan explain`."""
    pages = GENERATED()
    for folder, rules in (("rules", api.rules()), ("habits", api.habit_rules())):
        assert all(pages[f"{folder}/{rule.id}.md"] == api.explanation(rule.id) + fixes(rule.id) for rule in rules)
        assert all(f"/generated/{folder}/{rule.id}.md" in pages[f"tables/{folder}.md"] for rule in rules)
    assert all(f"commands/{name}.md" in pages for name in all_commands())
    assert all(f"`{schemas.version(name)}`" in pages["tables/schemas.md"] for name in schemas.KINDS)


def test_every_public_name_has_its_place_in_the_reference() -> None:
    """By what it is: a function, a class, an exception."""
    page = (DOCS / "reference" / "api.md").read_text()
    named = set(re.findall(r"^\.\. auto(?:function|class|exception):: syncscan\.(\w+)$", page, re.M))
    assert named == set(syncscan.__all__) - {"__version__"}


def test_what_contributors_are_sent_to_is_there() -> None:
    """Files and folders that CONTRIBUTING.md names, but for those that its examples write; targets of make it calls."""
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    for heading in ("Adding a rule", "Adding a habit"):
        before, _, page = contributing.partition(f"## {heading}\n")
        contributing = before + page.partition(f"<!-- /{heading.lower().replace(' ', '-')} -->")[2]
    named = set(re.findall(r"(?:syncscan|tests|docs|benchmarks|sample_traces)/[\w/.-]*\w", contributing))
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []
    modules = set(re.findall(r"`([\w/]+/\w+\.py)`", contributing)) - {"timm/utils/gauge.py"}
    assert len(modules) > 8
    assert [name for name in modules if not any((top / name).exists() for top in (ROOT, ROOT / "syncscan"))] == []
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    called = re.findall(r"(?:`|^    |^\$ )make ([a-z]+)", contributing, re.M)
    assert len(called) > 8
    assert set(called) <= set(targets)


@each("name", all_commands())
def test_a_command_s_page_has_each_of_its_options(name: str) -> None:
    """With what its help says of it."""
    page = GENERATED()[f"commands/{name}.md"]
    output = invoked([name, "--help"], COLUMNS="1000").stdout
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", output, re.M)
    assert [option for option in options if option != "--help" and option not in page] == []


@each("path", sorted((DOCS / "examples").glob("*.json")), ids=lambda p: p.stem)
def test_an_example_follows_its_schema(path: Path) -> None:
    """The one that its page shows."""
    jsonschema.validate(json.loads(path.read_text()), schemas.schema(path.stem))


OTHERS = {
    "--source-only",
    "--capture-range",
    "--cuda-graph-trace",
    "--cudabacktrace",
    "--python-backtrace",
    "--pytorch",
    "--type",
    "--hf-token",
    "--compile",
    "--graphs",
    "--summary",
    "--ten",
    "--rule",
    "--raw",
    "--epochs",
    "--nproc-per-node",
    "--syncscan-report",
    "--python-sampling",
    "--version",
    "--help",
    "--jobid",
    "--overlap",
    "--pty",
    "--update-golden",
}
"""Options of nsys, of benchmarks, of the reader's script, of torchrun, srun, pytest, and of every command."""


@each("page", PAGES, ids=lambda p: p.stem)
def test_every_option_of_a_page_is_one(page: Path) -> None:
    """Each is an option of some command, so that a renamed one is renamed here too."""
    context = click.Context(group)
    of = [group.get_command(context, name) for name in all_commands()]
    options = {
        option
        for command in (group, *of)
        if command
        for one in command.params
        for option in (*one.opts, *one.secondary_opts)
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text())) - options - OTHERS == set()


def test_the_columns_of_a_page_are_those_of_the_frames() -> None:
    """The columns are those of findings, of the host's time, and of a job, whose rows hold a finding each."""
    analysis = syncscan.analyze(ROOT / "sample_traces" / "logged.pt.trace.json.gz")
    job = syncscan.analyze_fleet(str(ROOT / "sample_traces" / "jobs" / "ddp.one_rank_item"))
    page = (DOCS / "reference" / "formats.md").read_text()
    tables = re.findall(r"\| column \| what it holds \|\n\|---\|---\|\n((?:\|.*\n)+)", page)
    named = [re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines())) for table in tables]
    named[2] += named[0]
    frames = (analysis.to_frame(), analysis.host, job.to_frame())
    assert [set(names) for names in named] == [set(frame.columns) for frame in frames]


def test_what_the_tutorial_says_is_what_its_commands_print(desk: Path) -> None:
    """The numbers of its sentences, in the output of the projection and in the proof."""
    page = " ".join((DOCS / "tutorial.md").read_text().split())
    trace = "sample_traces/pair/before.pt.trace.json.gz"
    printed = " ".join(invoked(["whatif", trace, "--remove", "rule:item"]).stdout.split())
    for text in ("9.1 ms instead of 13.7 ms", "9.00 ms of device work", "the device is the limit"):
        assert text in page
        assert text in printed
    proof = json.loads((ROOT / "sample_traces" / "pair" / "proof.json").read_text())
    (low, high), (least, most) = proof["gain"]["range"], proof["projected"]["range"]
    measured = f"{proof['gain']['share']:.0%} less ({low:.0%} to {high:.0%}), where {proof['projected']['share']:.0%}"
    assert f"{measured} ({least:.0%} to {most:.0%}) was projected".replace("%", " %") in page
    assert (proof["proven"], proof["result"]["same"]) == (True, "same")


def test_the_advice_is_what_a_capture_says() -> None:
    """The steps are as uncertain as the page's."""
    page = (DOCS / "explanation" / "replay.md").read_text()
    (quoted,) = re.findall(r"`(±(\d+)% after (\d+) steps: repeat with --calibrate \d+\.)`", page)
    sentence, percent, steps = quoted[0], int(quoted[1]), int(quoted[2])

    def times(apart: float) -> StepTimes:
        return StepTimes(1000.0, tuple(1000 + apart * (k - (steps - 1) / 2) for k in range(steps)), "device")

    assert str(times(percent / 100 / (times(1.0).uncertainty or 0)).advice()).endswith(sentence)
