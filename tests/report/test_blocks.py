"""A document of blocks in a terminal, in Markdown and on a page: each shows all of it, and obeys none of its text."""

from __future__ import annotations

import pytest

from syncscan.report import markup, page, terminal
from syncscan.report.blocks import (
    Bar,
    Block,
    Code,
    Figure,
    Fold,
    Grid,
    GridColumn,
    Heading,
    Item,
    Items,
    Sentence,
    Span,
    Stacked,
    code,
    command,
    facts,
    notes,
    place,
    strong,
    to_do,
)  # fmt: skip

DOCUMENT: tuple[Block, ...] = (
    Heading("Two places wait.", 1, "good"),
    Sentence(("A step takes ", strong("5 ms"), ".")),
    to_do("Read it later."),
    facts([("result", "the same"), ("projected", "")]),
    Heading("Places"),
    Grid(
        (GridColumn("line", whole=True), GridColumn("what"), GridColumn("saves", right=True)),
        ((place("train.py:12"), Stacked((code("a|b"), Span("each step", "dim"))), "2 ms"), ("", "x", "1 ms")),
    ),
    Items((Item((place("train.py:7"), " waits"), ("below",)),)),
    Items((Item("first", mark=Span("1.")), Item("more", mark=Span("+", "bad")))),
    Code("-old\n+``` new", "diff"),
    Figure("Drawing", lambda: "<svg></svg>", ("step_picture.css",)),
    Fold("Details", (Sentence("inside"),)),
    Sentence(("Next: ", command(["syncscan", "fix", "a b.py"]))),
    *notes(["nothing else"]),
)
HOSTILE = "<script>\x1b[31m| [x](http://x) \u202e`\n## @team"


def test_in_a_terminal():
    """Places and commands aren't broken; a table has its columns, and what is behind it a line of distance."""
    text = terminal.drawn(DOCUMENT, 60)
    assert "A step takes 5 ms.\n→ Read it later.\n  result  the same\n\nPlaces\n" in text
    assert "\ntrain.py:12  a|b         2 ms\n             each step\n" in text
    assert "train.py:7 waits\n    below\n 1. first\n +  more\n" in text
    assert "\n+``` new\n" in text
    assert "\n\nDetails\ninside\nNext: syncscan fix 'a b.py'\nnote: nothing else\n" in text
    assert terminal.drawn((Fold("Details", (Sentence("inside"),)), Heading("Places")), 60).endswith(
        "inside\n\nPlaces\n"
    )


def test_colors():
    """Looks are colors of the terminal, if asked for."""
    assert "\x1b[1;32mTwo places wait." in terminal.drawn(DOCUMENT, 60, color=True)
    assert "\x1b" not in terminal.drawn(DOCUMENT, 60)


def test_a_table_with_long_names_is_drawn_row_by_row():
    """Where the columns that aren't broken leave the others too little room."""
    table = Grid((GridColumn("line", whole=True), GridColumn("what")), (("a" * 50, "reads it"), ("b", "")))
    assert terminal.drawn([table], 60) == f"{'a' * 50}\n    what: reads it\nb\n"


def test_in_markdown():
    """Bars in code don't end a cell, and a fence is longer than any in the code."""
    text = markup.drawn(DOCUMENT)
    assert text.startswith(
        "### Two places wait.\n\nA step takes **5 ms**.\n\n→ Read it later.\n\n| | |\n|---|---|\n| result |"
    )
    assert "| line | what | saves |\n|---|---|--:|\n| `train.py:12` | `a\\|b`<br>each step | 2 ms |\n" in text
    assert "- `train.py:7` waits<br>below\n\n1. first\n- `+` more\n\n````diff\n-old\n+``` new\n````\n" in text
    assert "<details><summary>Details</summary>\n\ninside\n\n</details>\n\nNext: `syncscan fix 'a b.py'`\n" in text
    assert "<sub>note: nothing else</sub>" in text


def test_on_a_page():
    """Each heading begins a section; a figure is markup of ours."""
    html = page.drawn(DOCUMENT, "syncscan x", "trace.json")
    assert "<title>trace.json · syncscan x</title>" in html
    assert '<h1 class="good"><bdi>Two places wait.</bdi>' in html
    assert html.count('<section class="panel">') == 2
    assert '<code><bdi>a|b</bdi></code><br><bdi class="dim">each step</bdi></td><td class="num"><bdi>2 ms</bdi>' in html
    assert "<h2>Drawing</h2>\n<svg></svg>" in html
    assert ".sp-ground {" in html
    assert "<details><summary>Details</summary>" in html


def test_a_bar_is_drawn_on_a_page_and_characters_elsewhere():
    """Each part as wide as its share; a page names them."""
    block = facts([("run", Stacked((Bar((("steps", 0.5), ("evaluation", 0.25))), "half of it")))])
    characters = f"{'█' * 30}{'▒' * 15}"
    assert terminal.drawn([block], 80) == f"  run  {characters}\n       half of it\n"
    assert f"| run | {characters}<br>half of it |" in markup.drawn([block])
    html = page.drawn([block], "x")
    assert 'x="50.0%" width="25.0%"' in html
    assert "<title>evaluation 25%</title>" in html
    assert "█" not in html


def test_an_entry_that_opens_something_is_a_button_on_a_page():
    """Its first piece stays before the button; elsewhere it is as any entry."""
    words, opens = (strong("27%"), " at ", code("a.py:1")), {"finding": 3}
    entry, plain = (Items((Item(words, ("below",), opens=to),)) for to in (opens, None))
    assert terminal.drawn([entry]) == terminal.drawn([plain])
    assert markup.drawn([entry]) == markup.drawn([plain])
    html = page.drawn([entry], "x")
    assert (
        'id="r0" data-kind="change" data-finding="3"><bdi class="strong">27%</bdi><div><button type="button" '
        'class="pick"><bdi> at </bdi><code><bdi>a.py:1</bdi></code></button><p><bdi>below</bdi></p></div></li>'
    ) in html
    assert "<button" not in page.drawn([plain], "x")


def test_text_between_backticks_is_code_on_a_page():
    """Rules and advice write it so; what has a look of its own is as recorded."""
    html = page.drawn([Sentence(("run `syncscan x`", Span("`y`", "dim")))], "x")
    assert '<bdi>run <code>syncscan x</code></bdi><bdi class="dim">`y`</bdi>' in html


def test_long_lists_say_how_much_is_left_out():
    """Except on a page, which shows more."""
    blocks = [Items(tuple(map(Item, "abc")), most=2), Grid((GridColumn("n"),), (("1",), ("2",), ("3",)), most=1)]
    for text in (terminal.drawn(blocks), markup.drawn(blocks)):
        assert "… and 1 more." in text
        assert "… and 2 more." in text
    assert "more" not in page.drawn(blocks, "x").partition("<main>")[2]


@pytest.mark.parametrize(
    "block",
    [
        Heading(HOSTILE, 1), Sentence(HOSTILE), Items((Item(HOSTILE, (HOSTILE,)),)), facts([("x", HOSTILE)]),
        facts([("x", Stacked((Bar(((HOSTILE, 1.0),)),)))]), Items((Item((strong("1%"), HOSTILE), opens={"at": 1}),)),
        Grid((GridColumn("x", whole=True),), ((code(HOSTILE),),)), Sentence(("x", place(HOSTILE))),
    ],
)  # fmt: skip
def test_text_is_shown_and_not_obeyed(block: Block):
    """Escape sequences, markup, line ends and marks of direction."""
    assert not {"\x1b", "\u202e"} & set(terminal.drawn([block]))
    text = markup.drawn([block])
    assert not {"\x1b", "\u202e"} & set(text)
    assert "\n##" not in text.removeprefix("###")
    html = page.drawn([block], "x")
    assert "<script" not in html
    assert "\x1b" not in html
