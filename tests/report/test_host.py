"""Where the host's time goes, as every format says it: the sentence, the tables, JSON and the picture's columns."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from syncscan.model.host import UNKNOWN_HOST, Host
from syncscan.model.step import Bound
from syncscan.report import host, render
from syncscan.report.blocks import code
from tests.each import each
from tests.report.example import COUNTED, HOSTILE, SAMPLED, host_bound, hostile_host

SAID = "Of 14.3 ms: 5.9 forward, 3.1 backward, 2.2 optimizer, 2.2 in between (transformers), 0.9 input."
FORMATS = ("text", "markdown", "html", "fragment")


def options_of(form: str) -> dict[str, bool]:
    """With its tables, where a report has them only on demand."""
    return {"verbose": True} if form in ("text", "markdown") else {}


def text_of(form: str, of: Host) -> str:
    """A report of a host-bound step, as far as it is words: ends of lines and marks of escaping left out."""
    return " ".join(render(host_bound(of), form, **options_of(form)).replace("\\", "").replace("&#39;", "'").split())


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_says_it_in_a_sentence(form: str) -> None:
    """Where the host is the limit: as sampled where it was sampled, else as the trace has it."""
    assert SAID in text_of(form, Host(sampled=SAMPLED, counted=COUNTED))
    assert "Of 14.3 ms: 6.4 in ops, 3.0 in launches, 0.3 in queries, 4.1 in Python" in text_of(
        form, Host(counted=COUNTED)
    )


@pytest.mark.parametrize("bound", Bound)
def test_whatever_is_the_limit_it_stands_behind_the_first_screen(bound: Bound) -> None:
    """The first screen is about the limit; `-v` and the page have where the host's time goes all the same."""
    analysis = host_bound()
    analysis = replace(analysis, step=replace(analysis.step, bound=bound))
    assert SAID not in " ".join(render(analysis, "text").split())
    for shown in (render(analysis, "text", verbose=True), render(analysis, "html")):
        assert SAID in " ".join(shown.split())
        assert "Self time by phase and owner" in shown


@pytest.mark.parametrize("form", ["github", "junit", "json"])
def test_media_of_single_lines_name_the_hottest_line(form: str) -> None:
    """Beside the verdict, which says that one line takes most, and of which step."""
    assert "Most: functional.py:7, under model.py:12, 5.00 ms of 14.3 ms." in render(host_bound(), form)


@pytest.mark.parametrize("form", FORMATS)
def test_tables_say_the_rest(form: str) -> None:
    """Phase by owner, lines, the kinds of calls, ops by scope; of what is known."""
    both = text_of(form, Host(sampled=SAMPLED, counted=COUNTED))
    for words in (
        "Self time by phase and owner",
        "torch/optim/adamw.py:8",
        "1,234 ops and 420 launches per step",
        "engine: MmBackward0",
    ):
        assert words in both
    assert "aten::mm" not in text_of(form, Host(sampled=SAMPLED))
    assert "Self time by phase and owner" not in text_of(form, Host(counted=COUNTED))
    assert "Where the host's time goes" not in text_of(form, UNKNOWN_HOST)


@pytest.mark.parametrize("form", FORMATS)
def test_times_under_the_profiler_are_called(form: str) -> None:
    """Without a calibration they are too long."""
    recorded = text_of(form, Host(counted=replace(COUNTED, scaled=False)))
    assert "Of 14.3 ms under the profiler: 6.4 in ops" in recorded
    assert "include the profiler's overhead" in recorded
    assert "under the profiler" not in text_of(form, Host(counted=COUNTED))


def test_a_host_that_mostly_waits_gets_no_sentence() -> None:
    """A count of such a step doesn't explain why it is slow."""
    waiting = replace(COUNTED, waits_us=COUNTED.step_us * 2)
    assert host.sentence(host_bound(Host(counted=waiting))) == ""


def test_what_lies_in_between_has_a_name_where_one_owner_has_most_of_it() -> None:
    """Else it is nobody's; the program's own code is called so."""
    owned = {
        "in between (the program)": ("user", "user"),
        "in between (transformers)": ("transformers", "transformers"),
        "in between": ("user", "transformers", "python"),
    }
    between = next(n for n in SAMPLED.nodes if n.phase.value == "other")
    for words, owners in owned.items():
        nodes = tuple(replace(between, owner=owner, self_us=5_000.0) for owner in owners)
        text = host.sentence(host_bound(Host(sampled=replace(SAMPLED, nodes=nodes))))
        assert text == f"Of 14.3 ms: {5 * len(owners):.1f} {words}."


def test_the_table_of_phases_and_owners_adds_up() -> None:
    """Each row to its owner's time, each column to its phase's, all to the step."""
    _, table = host.tables(host_bound().host_time)[0]
    phases = ("forward", "backward", "optimizer", "in between", "input")
    assert tuple(column.name for column in table.columns) == ("whose code", *phases, "total", "of the step")
    assert table.rows[0] == ("torch", "5.00 ms", "3.10 ms", "2.20 ms", "–", "900 µs", "11.2 ms", "78%")
    assert table.rows[-1] == ("total", "5.90 ms", "3.10 ms", "2.20 ms", "2.20 ms", "900 µs", "14.3 ms", "")


def test_how_often_an_op_comes_is_a_plain_number() -> None:
    """Many times per step, and fewer than once."""
    often = tuple(replace(COUNTED.dearest[0], per_step=count) for count in (1234.0, 12.4, 0.333))
    _, table = host.tables(Host(counted=replace(COUNTED, dearest=often)))[-1]
    assert [row[2] for row in table.rows] == ["1,234", "12", "0.333"]


def test_tables_show_ten_rows_and_how_many_more_there_are() -> None:
    """However many functions and owners there are."""
    nodes = tuple(replace(SAMPLED.nodes[0], function=f"f{k}", owner=f"package{k}", self_us=10.0 + k) for k in range(30))
    (_, by_owner), (_, lines) = host.tables(Host(sampled=replace(SAMPLED, nodes=nodes)))
    assert (len(by_owner.rows), by_owner.rows[-1][0]) == (host.SHOWN + 1, f"… {30 - (host.SHOWN - 1)} more")
    assert (len(lines.rows), lines.rows[-1][0]) == (host.SHOWN + 1, f"… {30 - host.SHOWN} more")
    assert lines.rows[0][0] == code("f29")


def test_json_has_the_values_field_by_field() -> None:
    """Both parts or null for what isn't known, and null for the whole where nothing is."""
    result = json.loads(render(host_bound(), "json"))["host"]
    assert set(result) == {"sampled", "counted"}
    node = SAMPLED.nodes[5]
    assert result["sampled"]["nodes"][5] == {
        **{name: getattr(node, name) for name in ("parent", "function", "file", "line", "owner", "us", "self_us")},
        "phase": "optimizer",
    }
    assert result["sampled"]["phases"][0] == {"name": "forward", "us": 5900.0, "share": pytest.approx(5.9 / 14.3)}
    assert result["counted"]["step_us"] == COUNTED.step_us == pytest.approx(14_300)
    assert result["counted"]["dearest"][0]["scope"] == ["encoder", "attention"]
    assert json.loads(render(host_bound(Host(counted=COUNTED)), "json"))["host"]["sampled"] is None
    assert json.loads(render(host_bound(UNKNOWN_HOST), "json"))["host"] is None


def test_the_picture_has_the_program_first_and_callers_before_what_they_call() -> None:
    """Program, torch and Python have the same color in every report; too short a part of a step is none of it."""
    tiny = replace(SAMPLED.nodes[8], parent=8, us=1.0, self_us=1.0)
    picture = host.picture(Host(sampled=replace(SAMPLED, nodes=(*SAMPLED.nodes, tiny))))
    assert picture is not None
    assert [name for name, _ in picture["owners"]] == ["the program", "torch", "transformers", "python"]
    assert picture["colors"] == [0, 1, 3, 2]
    assert picture["parent"] == [-1, 0, 1, 2, 1, 1, 1, 1, 7]
    assert [picture["texts"][k] for k in picture["place"]][3] == "torch/nn/functional.py:7"
    assert host.picture(Host(counted=COUNTED)) is None


def test_a_tree_is_drawn_as_far_as_a_page_bears_it() -> None:
    """The longest nodes of it, each with its callers."""
    chain = [replace(SAMPLED.nodes[0], parent=k - 1, us=14_300.0 - k / 10) for k in range(host.MOST_DRAWN + 50)]
    picture = host.picture(Host(sampled=replace(SAMPLED, nodes=tuple(chain))))
    assert picture is not None
    assert picture["parent"] == list(range(-1, host.MOST_DRAWN - 1))


@each("text", [t for t in HOSTILE if t], ids=ascii)
def test_a_hostile_name_is_text(text: str) -> None:
    """In every format, whichever name of it."""
    analysis = host_bound(hostile_host(text))
    for form in (*FORMATS, "json", "github"):
        assert render(analysis, form).encode()
    assert all(c.isprintable() or c == "\n" for c in render(analysis, "text"))
    plain = host_bound(hostile_host("plain"))
    assert render(analysis, "markdown").count("<details>") == render(plain, "markdown").count("<details>")
    picture = host.picture(hostile_host(text))
    assert picture is not None
    assert max(map(len, picture["texts"])) <= 200


@pytest.mark.parametrize("form", ["markdown", "fragment", "html", "text"])
def test_golden(form: str, golden: Callable[[str, str], None]) -> None:
    """The host's report equals its golden file."""
    report = render(host_bound(), form, **options_of(form))
    golden(f"host.{form}", report[report.index("Where the host") :].partition("</section>")[0])


def test_a_narrow_terminal_cuts_no_number_and_no_line() -> None:
    """At 80 columns heads take two lines at most, and a long path goes on below."""
    shown = render(host_bound(Host(sampled=SAMPLED, counted=COUNTED)), "text", width=80, verbose=True).splitlines()
    begin = shown.index("Self time by phase and owner")
    assert [line.split() for line in shown[begin + 1 : begin + 3]] == [
        ["in", "of", "the"],
        ["whose", "code", "forward", "backward", "optimizer", "between", "input", "total", "step"],
    ]
    assert shown[begin + 4].split() == "torch 5.00 ms 3.10 ms 2.20 ms – 900 µs 11.2 ms 78%".split()
    line = next(k for k, text in enumerate(shown) if text.startswith("_inner_training_loop  transformers/trainer.py"))
    assert shown[line + 1].strip() in "transformers/trainer.py:2100"


def test_ops_without_scopes_have_no_column_for_them() -> None:
    """As in a trace without `record_function`."""
    bare = replace(COUNTED, dearest=tuple(replace(dear, scope=()) for dear in COUNTED.dearest))
    tables = [host.tables(Host(counted=match))[-1][1] for match in (COUNTED, bare)]
    heads = [tuple(column.name for column in table.columns) for table in tables]
    assert heads == [("op", "scope", "times", "self", "total"), ("op", "times", "self", "total")]
