"""`--reports` writes the reports of a page's traces beside it; every link leads to a file and a part that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syncscan.cli import group
from syncscan.errors import UsageError

SAMPLES = Path(__file__).parents[2] / "sample_traces"
PAIR = tuple(str(SAMPLES / "pair" / f"{name}.pt.trace.json.gz") for name in ("before", "after"))


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(group, [*map(str, words)])


def links(page: Path) -> list[tuple[Path, str]]:
    """The file and the part that each link of a page names, but those into the page itself."""
    addresses = re.findall(r'href="([^"#]+)(?:#([^"]*))?"', page.read_text("utf-8"))
    return [((page.parent / file).resolve(), part) for file, part in addresses]


def test_a_job_s_page_leads_to_each_rank_and_each_finding(tmp_path: Path) -> None:
    """The report of a rank leads back; a finding is linked in the rank that has it."""
    page = tmp_path / "job.html"
    result = run("fleet", SAMPLES / "jobs" / "ddp.one_rank_item", "-o", page, "--reports")
    assert result.exit_code == 0
    assert {file.name for file, _ in links(page)} == {"rank0.html", "rank1.html"}
    assert any(part for _, part in links(page))
    for file, part in links(page):
        assert f'id="{part}"' in file.read_text("utf-8") if part else file.is_file()
        assert (page, "") in links(file)


def test_a_diff_leads_to_the_report_of_each_state(tmp_path: Path) -> None:
    """Whose name in the address is as in a URL."""
    page = tmp_path / "a b.html"
    assert run("diff", *PAIR, "-o", page, "--reports").exit_code == 0
    assert 'href="a%20b-reports/before.html"' in page.read_text("utf-8")
    assert {path.name for path in (tmp_path / "a b-reports").iterdir()} == {"before.html", "after.html"}


def test_reports_that_are_there_are_replaced_with_force_alone(tmp_path: Path) -> None:
    """As the page itself."""
    command = ("diff", *PAIR, "-o", tmp_path / "d.html", "--reports")
    assert run(*command).exit_code == 0
    (tmp_path / "d.html").unlink()
    assert isinstance(run(*command).exception, UsageError)
    assert run(*command, "--force").exit_code == 0


@pytest.mark.parametrize("options", [("--format", "html"), ("-o", "d.json")])
def test_they_need_a_page_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    """And nothing is read before that is said."""
    monkeypatch.chdir(tmp_path)
    assert isinstance(run("diff", *PAIR, "--reports", *options).exception, UsageError)
    assert list(tmp_path.iterdir()) == []


def test_without_the_option_no_page_links_a_file(tmp_path: Path) -> None:
    """A report stands alone."""
    assert run("diff", *PAIR, "-o", tmp_path / "d.html").exit_code == 0
    assert links(tmp_path / "d.html") == []
