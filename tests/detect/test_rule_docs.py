"""Every rule is listed, documented under the same headings, and its two examples do the same."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import syncscan
from syncscan.detect import PREAMBLE, RuleDoc, catalogue
from syncscan.detect import rules as folder
from syncscan.detect.rule import diagnose
from syncscan.detect.rule_table import table_of
from syncscan.detect.rules import ORDER
from syncscan.model import race
from syncscan.model.finding import Cause, Diagnosis
from syncscan.report.front_changes import DO
from syncscan.rules.pages import FOLDER, SYNC_HEADINGS, habit_page, sync_page
from tests.each import each

DOCS = {doc.id: doc for doc in catalogue()}
NOT_COMPARED = re.compile(r"^Not (compared|run): \S", re.MULTILINE)
NOT_RUN = re.compile(r"^Not run: \S", re.MULTILINE)


def test_every_page_has_a_rule_and_every_rule_a_page() -> None:
    """A rule that isn't listed is never asked; `syncscan explain one-hot` and `syncs/one-hot.md` lead to each other."""
    files = {page.stem: page for page in (FOLDER / "syncs").glob("*.md")}
    assert {*files} == {*ORDER} == {*DOCS}
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id) for id in ORDER)


def test_every_rule_that_is_written_in_python_is_listed() -> None:
    """The public functions beside the list are rules; their names are the ids, with underscores."""
    modules = [import_module(f"{folder.__name__}.{m.name}") for m in pkgutil.iter_modules(folder.__path__)]
    functions = {name for m in modules for name, f in vars(m).items() if getattr(f, "__module__", "") == m.__name__}
    assert {name.replace("_", "-") for name in functions if not name.startswith("_")} <= {*ORDER}


def test_the_rule_that_takes_everything_is_the_last() -> None:
    """Special rules come before general ones, and nothing after the one without a condition."""
    assert ORDER[-1] == "unclassified"


@each("doc", DOCS.values(), DOCS)
def test_a_rule_has_all_headings_in_their_order_and_none_is_empty(doc: RuleDoc) -> None:
    """Readers find the same things at the same place in every rule; one on races where the fix can bring one in."""
    assert tuple(heading for heading in doc.sections if heading != race.HEADING) == SYNC_HEADINGS
    assert all(doc.sections.values())
    assert doc.summary.endswith(".")
    assert doc.name


RACE = re.compile(r"^race: read-before-copy$", re.MULTILINE)
PAGES = {page: page.read_text(encoding="utf-8") for page in sorted(FOLDER.glob("*/*.md"))}


READ_LATE = [page for page, text in PAGES.items() if RACE.search(text)]


@each("page", READ_LATE, lambda page: page.stem)
def test_advice_to_copy_to_the_host_without_waiting_says_what_stands_before_the_read(page: Path) -> None:
    """In code, in the advice itself and on the rule's page."""
    doc = DOCS[page.stem]
    assert any("event.synchronize()" in fix for fix in doc.fixes.values())
    assert "copied.synchronize()" in doc.sections[race.HEADING]


def page_of(page: Path) -> RuleDoc:
    return sync_page(page.stem) if page.parent.name == "syncs" else habit_page(page.stem)


def texts_in(file: Path) -> list[str]:
    """Return the texts in a file of code, without docstrings."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in docs)
    return [text for text in texts if isinstance(text, str)]


PACKAGE = Path(syncscan.__file__).parent
CODE = sorted((PACKAGE / "lint/patterns").glob("*.py"))
TABLES = sorted(FOLDER.glob("*/*.toml"))
TEXTS = [
    *((page.stem, fix) for page in PAGES for fix in page_of(page).fixes.values()),
    *((file.stem, place.fix) for file in TABLES for place in table_of(file.stem).places),
    *((file.stem, text) for file in CODE for text in texts_in(file)),
]
ADVICE = [(name, text) for name, text in TEXTS if re.search("non_blocking['=:]+ ?True", text)]


@each("text", [text for _, text in ADVICE], [name for name, _ in ADVICE])
def test_advice_to_copy_without_waiting_says_what_must_stand_before_the_next_use(text: str) -> None:
    """To the host: the event that the read waits for, in code. To the device: that the source stays as it is."""
    assert "event.synchronize()" in text or re.search("until the cop(y has|ies have) run", text)


DOS = [
    *((page.stem, do) for page in PAGES for do in page_of(page).dos.values()),
    *(
        (f"{file.name}: {place.title or place.files}", place.do)
        for file in TABLES
        for place in table_of(file.stem).places
        if place.fix
    ),
]


def test_every_fix_has_an_imperative_of_one_line() -> None:
    """A first screen has a line for it: 80 columns, indented by four; a table's own fix has its own."""
    lacking = {page.name: page_of(page).fixes.keys() - page_of(page).dos.keys() for page in PAGES}
    assert {name: fixes for name, fixes in lacking.items() if fixes} == {}, "a fix needs `do` beside it"
    wrong = [(name, do) for name, do in DOS if not (0 < len(do) <= DO and do.endswith("."))]
    assert wrong == [], f"`do` is one line of at most {DO} characters that ends with a period"


def test_there_is_such_advice_in_many_rules() -> None:
    """Rules of syncs and of habits give it."""
    assert len({name for name, _ in ADVICE}) >= 11


@each("doc", DOCS.values(), DOCS)
def test_a_finding_says_the_first_paragraph_in_plain_text(doc: RuleDoc) -> None:
    """One line without marks, as long as a reader reads it; the documentation has all paragraphs."""
    for text, heading in ((doc.why, "Why it stalls"), (doc.when_fine, "When it is fine")):
        assert "\n" not in text
        assert "`" not in text
        assert text.endswith(".")
        assert len(text) <= 240
        assert " ".join(doc.sections[heading].replace("`", "").split()).startswith(text)


def test_a_title_is_filled_in_with_what_was_seen_and_braces_of_code_stay() -> None:
    """The variant that the match names has words of its own, or those of all."""
    (rule,) = (rule for rule in folder.RULES if rule.id == "optimizer-readback")
    seen = diagnose(rule, Diagnosis(variant="design", values={"name": "LBFGS"}))
    assert seen.title == "LBFGS reads values back in its step"
    assert seen.fix == "LBFGS reads by design: choose another optimizer, or step less often."
    stated = diagnose(rule, Diagnosis(title="a", fix="{x: 1}"))
    assert (stated.title, stated.fix) == ("a", "{x: 1}")


def test_what_was_seen_of_a_call_follows_why() -> None:
    """Where the rule can't know everything."""
    (item,) = (rule for rule in folder.RULES if rule.id == "item")
    text = diagnose(item, Diagnosis(seen="It was read 7 times."))
    assert text.why.startswith("The value is ready only after ")
    assert text.why.endswith(" It was read 7 times.")


@each("doc", DOCS.values(), DOCS)
def test_the_cause_is_a_class_of_the_catalogue(doc: RuleDoc) -> None:
    """Only the rule for what no rule knows claims no cause."""
    assert (doc.cause == Cause.UNKNOWN) == (doc.id == "unclassified")


@each("doc", DOCS.values(), DOCS)
def test_both_examples_are_code_that_makes_a_result(doc: RuleDoc) -> None:
    """Whoever reads a rule can paste both."""
    for heading in ("Example", "Use instead"):
        compile(doc.code(heading), f"{doc.id}: {heading}", "exec")
        assert re.search(r"^\s*result\b.*=", doc.code(heading), re.MULTILINE)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Sparse invariant checks")
@each("doc", [d for d in DOCS.values() if not NOT_RUN.search(d.sections["Use instead"])], lambda doc: doc.id)
def test_what_to_use_instead_does_the_same(doc: RuleDoc) -> None:
    """On the CPU both examples run, and give the same result unless the rule says why they don't."""
    torch = pytest.importorskip("torch")
    for module in re.findall(r"^from (torch\w+)", doc.code("Example"), re.MULTILINE):
        pytest.importorskip(module)
    first, second = run(doc.code("Example")), run(doc.code("Use instead"))
    if not NOT_COMPARED.search(doc.sections["Use instead"]):
        torch.testing.assert_close(
            as_tensor(torch, second), as_tensor(torch, first), check_dtype=False, rtol=1e-4, atol=1e-5
        )


def run(code: str) -> Any:
    """Return the `result` of the code, run after the preamble."""
    scope: dict[str, Any] = {}
    exec(PREAMBLE.replace('"cuda" if torch.cuda.is_available() else "cpu"', '"cpu"'), scope)
    exec(code, scope)
    return scope["result"]


def as_tensor(torch: Any, value: Any) -> Any:
    """Numbers and shapes as tensors, so that one comparison does for all; text as its bytes."""
    if isinstance(value, str):
        return torch.tensor(list(value.encode()))
    return value.detach().cpu() if isinstance(value, torch.Tensor) else torch.tensor(value)


def test_rule_modules_import_no_other_rule() -> None:
    """A rule can be read, moved and deleted alone."""
    for module in pkgutil.iter_modules(folder.__path__):
        source = importlib.import_module(f"{folder.__name__}.{module.name}").__spec__.origin
        text = Path(source).read_text(encoding="utf-8")
        assert "syncscan.detect.rules" not in text
