"""Every habit has a page under the same headings, whose code runs."""

from __future__ import annotations

import gc
import pkgutil
import re
from typing import Any

import pytest

from syncscan.detect import RuleDoc
from syncscan.detect import catalogue as sync_rules
from syncscan.habits import rules as folder
from syncscan.habits.documentation import HEADINGS, INSTEAD, PREAMBLE, WHEN_FINE, WHY, catalogue
from syncscan.model import race_examples

DOCS = {doc.id: doc for doc in catalogue()}
NOT_RUN = re.compile(r"^Not run: \S", re.MULTILINE)


def test_every_module_in_the_folder_is_in_the_list_and_the_other_way_round() -> None:
    """A rule that isn't listed is never asked."""
    modules = {module.name for module in pkgutil.iter_modules(folder.__path__)}
    assert modules == {rule.__name__.rpartition(".")[2] for rule in folder.RULES}


def test_a_file_is_called_as_its_habit() -> None:
    """Who reads an id in a report finds its rule by that name."""
    ids = [rule.ADVICE.rule for rule in folder.RULES]
    assert ids == [rule.__name__.rpartition(".")[2].replace("_", "-") for rule in folder.RULES]


def test_no_two_rules_have_a_name() -> None:
    """A habit's isn't a sync's either, so that `syncscan explain` takes both."""
    ids = [*DOCS, *(doc.id for doc in sync_rules())]
    assert len(ids) == len(set(ids))
    assert len(DOCS) == len(folder.RULES)


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_a_habit_has_all_headings_in_their_order_and_none_is_empty(doc: RuleDoc) -> None:
    """Readers find the same things at the same place in every habit."""
    assert tuple(h for h in HEADINGS if h in doc.sections) == tuple(doc.sections)
    assert {*HEADINGS} - {*doc.sections} <= {race_examples.HEADING}
    assert all(doc.sections.values())
    assert doc.summary.endswith(".")
    assert doc.of_habit


@pytest.mark.parametrize("rule", folder.RULES, ids=lambda rule: rule.ADVICE.rule)
def test_what_the_advice_says_is_written_once(rule: folder.Rule) -> None:
    """The docstring hasn't its headings; the page has its words."""
    assert not re.search(f"^## ({WHY}|{WHEN_FINE})$", rule.__doc__ or "", re.MULTILINE)
    page = DOCS[rule.ADVICE.rule].sections
    assert (page[WHY], page[WHEN_FINE]) == (rule.ADVICE.why, rule.ADVICE.when_fine)
    assert page[INSTEAD].startswith(rule.ADVICE.fix)


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_both_examples_are_code(doc: RuleDoc) -> None:
    """Whoever reads a page can paste both."""
    for heading in ("Example", INSTEAD):
        assert doc.code(heading)
        compile(doc.code(heading), f"{doc.id}: {heading}", "exec")


@pytest.mark.parametrize(
    "doc", [d for d in DOCS.values() if not NOT_RUN.search(d.sections[INSTEAD])], ids=lambda d: d.id
)
def test_both_examples_run(doc: RuleDoc) -> None:
    """On the CPU, unless the page says why they don't."""
    pytest.importorskip("torch")
    for heading in ("Example", INSTEAD):
        scope: dict[str, Any] = {}
        exec(PREAMBLE.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"'), scope)
        exec(doc.code(heading), scope)
        gc.unfreeze()  # one of them freezes, and what comes after isn't to carry it
