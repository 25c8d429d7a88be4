"""By the package's own client a program gets short answers about traces, and nothing from outside of a folder."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from syncscan import api
from syncscan.report import render
from syncscan.serving import mcp_server
from syncscan.serving.mcp_server import LINE, PAGE, paged
from tests.builder import TraceBuilder

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mcp") is None, reason="needs mcp")

LONGEST = 5_000
"""Characters of an answer: 2,000 tokens of 2.5 characters, as tokenizers make of paths and numbers at worst."""


def waiting(times: int = 1) -> TraceBuilder:
    """A step that reads values back, each in a scope of its own."""
    t = TraceBuilder()
    for start in t.steps(2, lasts=100_000):
        for at in range(times):
            begin = start + 10 + 700 * at
            with t.scope(f"part {at} of a network with long names of its modules", begin, begin + 600):
                t.sync("aten::item", at=begin + 20, wait=200)
    return t


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a server, with two traces and a program; a third trace lies outside."""
    inside = tmp_path / "inside"
    inside.mkdir()
    for path, times in ((inside / "one.json", 1), (inside / "many.json", 120), (tmp_path / "outside.json", 1)):
        waiting(times).write(path)
    (inside / "link.json").symlink_to(tmp_path / "outside.json")
    return inside


@pytest.fixture
def tools(folder: Path) -> Callable[..., tuple[str, bool]]:
    """Ask a tool; the answer, and whether it is an error."""

    async def ask(tool: str, arguments: dict[str, object]) -> tuple[str, bool]:
        import mcp

        async with mcp.Client(mcp_server.server(folder)) as client:
            answer = await client.call_tool(tool, arguments)
            return answer.content[0].text, bool(answer.is_error)

    return lambda tool, **arguments: asyncio.run(ask(tool, arguments))


def test_an_analysis_names_verdict_and_findings(tools: Callable[..., tuple[str, bool]], folder: Path) -> None:
    """The first screen comes first, as `analyze --format markdown` prints it; ids are those that other tools take."""
    text, failed = tools("analyze", trace="one.json")
    assert not failed
    screen = render(api.analyze(folder / "one.json"), "markdown").partition("| More")[0]
    assert text.startswith(screen)
    (id,) = re.findall(r"\(`([a-z-]+-[0-9a-f]{8})`", text)
    assert tools("explain", name=id, trace="one.json")[0].startswith("`aten::item`: **item waits")
    assert "The step without one sync" in tools("whatif", trace="one.json", remove=[f"id:{id}"])[0]


def test_a_long_answer_has_pages(tools: Callable[..., tuple[str, bool]]) -> None:
    """Each below 2,000 tokens; together they are the report."""
    first, _ = tools("analyze", trace="many.json")
    *_, last = first.splitlines()
    assert last.startswith("[page 1 of ")
    count = int(last.split(";")[0].split()[-1])
    pages = [tools("analyze", trace="many.json", page=page)[0] for page in range(1, count + 1)]
    assert max(map(len, pages)) <= LONGEST
    assert sum(line.startswith("| ") for page in pages for line in page.splitlines()) > 50
    assert (
        tools("analyze", trace="many.json", page=count + 1)[0]
        == f"There is no page {count + 1}; the last is {count}.\n"
    )


@pytest.mark.parametrize(
    "path", ["../outside.json", "link.json", "/etc/passwd", "~/x.json", "\0", "s3://bucket/x.json"]
)
@pytest.mark.parametrize("tool", ["analyze", "whatif", "diff", "fix", "prove"])
def test_nothing_outside_of_the_folder_is_read(tools: Callable[..., tuple[str, bool]], tool: str, path: str) -> None:
    """Neither by a path that leads out, nor by a link, nor from another machine."""
    arguments = {"before": path, "after": path} if tool in ("diff", "prove") else {"trace": path}
    arguments = {"program": path} if tool == "fix" else arguments
    text, failed = tools(tool, **arguments)
    assert failed
    assert "the server was started in" in text or "is not a path" in text


def test_a_folder_with_several_traces_is_reported(tools: Callable[..., tuple[str, bool]], folder: Path) -> None:
    """Which there are."""
    (folder / "link.json").unlink()
    text, failed = tools("analyze", trace=".")
    assert failed
    assert "one.json" in text


def test_a_rule_is_explained(tools: Callable[..., tuple[str, bool]]) -> None:
    """A habit's too; an unknown one is an error with the nearest."""
    assert "## Use instead" in tools("explain", name="nonzero")[0]
    assert "launch-bound" in tools("explain", name="launch-bound")[0]
    text, failed = tools("explain", name="nonzer0")
    assert failed
    assert "nonzero" in text


def test_a_diff_says_what_came(tools: Callable[..., tuple[str, bool]]) -> None:
    """By the same words as the command."""
    assert "nothing" not in tools("diff", before="one.json", after="many.json")[0].splitlines()[0]
    assert "No sync differs" in tools("diff", before="one.json", after="one.json")[0]


def test_the_command_speaks_on_standard_input_and_output(folder: Path) -> None:
    """A real client starts it; its tools are these, and those that run programs say so."""

    async def tools() -> dict[str, bool]:
        import mcp

        path = os.pathsep.join(filter(None, sys.path))
        command = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "syncscan", "serve", "mcp"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
        )
        async with mcp.Client(command) as client:
            assert "The host is the limit" in (await client.call_tool("analyze", {"trace": "one.json"})).content[0].text
            return {tool.name: tool.annotations.read_only_hint for tool in (await client.list_tools()).tools}

    expected = {"analyze": True, "explain": True, "whatif": True, "diff": True, "fix": False, "prove": False}
    assert asyncio.run(tools()) == expected


@pytest.mark.usefixtures("warm")
def test_a_fix_is_a_patch(
    tools: Callable[..., tuple[str, bool]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its tabs, and what verified it; the file stays as it is."""
    monkeypatch.chdir(folder)
    text = (
        "import torch\nx = torch.ones(3, device='cuda')\ntotal = 0.0\nfor k in range(5):\n"
        "\ttotal += (x * k).sum().item()\nprint(total)\n"
    )
    (folder / "train.py").write_text(text)
    answer, failed = tools("fix", program="train.py")
    assert not failed
    assert "\n+\ttotal += (x * k).sum().double()\n" in answer
    assert "1 place is fixed" in answer
    assert (folder / "train.py").read_text() == text


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_patch_keeps_line_ends(tools: Callable[..., tuple[str, bool]], folder: Path) -> None:
    """A file with Windows' line ends takes only a patch that has them."""
    text = (
        "import torch\r\nx = torch.ones(3, device='cuda')\r\ntotal = 0.0\r\nfor k in range(5):\r\n"
        "    total += (x * k).sum().item()\r\nprint(total)\r\n"
    )
    (folder / "train.py").write_bytes(text.encode())
    answer, failed = tools("fix", program="train.py")
    assert not failed
    assert "\n+    total += (x * k).sum().double()\r\n" in answer


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
def test_a_program_that_cannot_run_is_one_sentence(tools: Callable[..., tuple[str, bool]], folder: Path) -> None:
    """With the last line that it wrote, and no frames of the server."""
    (folder / "train.py").write_text("raise ValueError('no data')\n")
    answer, failed = tools("fix", program="train.py")
    assert failed
    assert "can't be run dry" in answer
    assert "ValueError: no data" in answer
    assert "Traceback" not in answer


def test_a_trace_that_changed_is_read_again(tools: Callable[..., tuple[str, bool]], folder: Path) -> None:
    """The cached analysis is of the file as it was."""
    before, _ = tools("analyze", trace="one.json")
    (folder / "one.json").write_text(json.dumps({"traceEvents": []}))
    assert tools("analyze", trace="one.json") != (before, False)


def test_a_page_holds_what_fits_and_no_line_is_lost() -> None:
    """A long name loses its middle; the pages together are the lines."""
    lines = [f"line {number} " + "x" * 80 for number in range(200)] + ["y" * 10_000]
    text = "\n".join(lines)
    count = int(paged(text).splitlines()[-1].split(";")[0].split()[-1])
    pages = [paged(text, page) for page in range(1, count + 1)]
    shown = [line for page in pages for line in page.splitlines() if not line.startswith("[page ")]
    assert max(map(len, pages)) <= PAGE + 100
    assert shown[:-1] == lines[:-1]
    assert len(shown[-1]) == LINE


@pytest.mark.parametrize("page", [-1, 0, 2])
def test_a_page_that_is_not_there(page: int) -> None:
    """None before the first either."""
    assert paged("a", page) == f"There is no page {page}; the last is 1.\n"


def test_control_characters_are_not_passed_on() -> None:
    """A name out of a trace is text, and no order to a terminal."""
    assert "\x1b" not in paged("\x1b[31mred")
