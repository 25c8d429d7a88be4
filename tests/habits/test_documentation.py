"""Every habit has a page under the same headings, whose code runs."""

from __future__ import annotations

import gc
import re
from typing import Any

import pytest

from syncscan.detect import RuleDoc
from syncscan.detect import catalogue as sync_rules
from syncscan.habits import PREAMBLE, catalogue
from syncscan.habits import rules as folder
from syncscan.model import race
from syncscan.rules.pages import FOLDER, HABIT_HEADINGS, INSTEAD
from tests.each import each

DOCS = {doc.id: doc for doc in catalogue()}
NOT_RUN = re.compile(r"^Not run: \S", re.MULTILINE)


def test_every_page_has_a_rule_and_every_rule_a_page() -> None:
    """Whoever reads an id in a report finds its page by that name, and its function in the table of rules."""
    assert {page.stem for page in (FOLDER / "habits").glob("*.md")} == {*folder.RULES} == {*DOCS}


def test_no_two_rules_have_a_name() -> None:
    """A habit's isn't a sync's either, so that `syncscan explain` takes both."""
    ids = [*DOCS, *(doc.id for doc in sync_rules())]
    assert len(ids) == len(set(ids))
    assert len(DOCS) == len(folder.RULES)


@each("doc", DOCS.values(), ids=DOCS)
def test_a_habit_has_all_headings_in_their_order_and_none_is_empty(doc: RuleDoc) -> None:
    """Readers find the same things at the same place in every habit."""
    assert tuple(h for h in doc.sections if h != race.HEADING) == HABIT_HEADINGS
    assert all(doc.sections.values())
    assert doc.summary.endswith(".")
    assert doc.of_habit


@each("doc", DOCS.values(), ids=DOCS)
def test_a_report_says_the_page_s_words(doc: RuleDoc) -> None:
    """In plain text: the fix is the header's, and stands on the page before its code."""
    assert doc.titles[""] == doc.name
    assert all(doc.sections[INSTEAD].startswith(fix) for variant, fix in doc.fixes.items() if not variant)


@each("doc", DOCS.values(), ids=DOCS)
def test_both_examples_are_code(doc: RuleDoc) -> None:
    """Whoever reads a page can paste both."""
    for heading in ("Example", INSTEAD):
        assert doc.code(heading)
        compile(doc.code(heading), f"{doc.id}: {heading}", "exec")


def takes_long(doc: RuleDoc) -> bool:
    """Return whether a page's code compiles, or starts processes that load data."""
    return any(word in doc.code(heading) for heading in ("Example", INSTEAD) for word in ("compile(", "num_workers"))


RUN = [doc for doc in DOCS.values() if not NOT_RUN.search(doc.sections[INSTEAD])]


@each("doc", RUN, lambda doc: doc.id, takes_long)
def test_both_examples_run(doc: RuleDoc) -> None:
    """On the CPU, unless the page says why they don't."""
    torch = pytest.importorskip("torch")
    for heading in ("Example", INSTEAD):
        scope: dict[str, Any] = {}
        exec(PREAMBLE.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"'), scope)
        exec(doc.code(heading), scope)
        torch.set_float32_matmul_precision("highest")  # one of them sets another, which later tests would read
        if "gc.freeze" in doc.code(heading):
            gc.unfreeze()  # it has frozen what is garbage by now
            gc.collect()
            gc.freeze()
