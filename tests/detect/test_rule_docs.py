"""Every rule is listed, documented under the same headings, and its two examples do the same."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import syncscan
from syncscan.detect import PREAMBLE, RuleDoc, catalogue
from syncscan.detect import rules as folder
from syncscan.detect.rule import HEADINGS, WHEN_FINE, WHY, Match, Rule, diagnose
from syncscan.detect.rules import item
from syncscan.model import race_examples
from syncscan.model.finding import Cause, Removal
from syncscan.model.race import RaceKind

DOCS = {doc.id: doc for doc in catalogue()}
NOT_COMPARED = re.compile(r"^Not (compared|run): \S", re.MULTILINE)
NOT_RUN = re.compile(r"^Not run: \S", re.MULTILINE)


def test_every_module_in_the_folder_is_in_the_list_and_the_other_way_round() -> None:
    """A rule that isn't listed is never asked."""
    modules = {m.name for m in pkgutil.iter_modules(folder.__path__)}
    assert modules == {rule.__name__.rpartition(".")[2] for rule in folder.RULES}


def test_ids_are_the_names_of_their_modules_with_hyphens_and_unique() -> None:
    """`syncscan explain one-hot` and `rules/one_hot.py` lead to each other."""
    ids = [rule.ID for rule in folder.RULES]
    assert ids == [rule.__name__.rpartition(".")[2].replace("_", "-") for rule in folder.RULES]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", i) for i in ids)


def test_the_rule_that_takes_everything_is_the_last() -> None:
    """Special rules come before general ones, and nothing after the one without a condition."""
    assert folder.RULES[-1].ID == "unclassified"


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_a_rule_has_all_headings_in_their_order_and_none_is_empty(doc: RuleDoc) -> None:
    """Readers find the same things at the same place in every rule; one on races where the fix can bring one in."""
    assert tuple(heading for heading in doc.sections if heading != race_examples.HEADING) == HEADINGS
    assert all(doc.sections.values())
    assert doc.summary.endswith(".")
    assert doc.name


READ_LATE = [rule for rule in folder.RULES if getattr(rule, "RACE", None) is RaceKind.READ_BEFORE_COPY]


@pytest.mark.parametrize("rule", READ_LATE, ids=lambda rule: rule.ID)
def test_advice_to_copy_to_the_host_without_waiting_says_what_stands_before_the_read(rule: Rule) -> None:
    """In code, in the advice itself and on the rule's page."""
    advice = inspect.getsource(rule).partition("WHEN_FINE")[2]  # type: ignore[arg-type]
    assert "event.synchronize()" in advice
    assert "copied.synchronize()" in DOCS[rule.ID].sections[race_examples.HEADING]


def advice_of(file: Path) -> list[str]:
    """Return what a file's rules advise to copy without waiting: texts beside titles, docstrings, why and when fine."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    about: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            about.add(node.value)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("WHY", "WHEN_FINE"):
            about.add(node.value)
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in about]
    return [text for text in texts if isinstance(text, str) and re.search("non_blocking['=:]+ ?True", text)]


ADVICE = [
    (file, text)
    for rules in ("detect/rules", "habits/rules", "lint/patterns")
    for file in sorted((Path(syncscan.__file__).parent / rules).glob("*.py"))
    for text in advice_of(file)
]


@pytest.mark.parametrize("text", [text for _, text in ADVICE], ids=[file.stem for file, _ in ADVICE])
def test_advice_to_copy_without_waiting_says_what_must_stand_before_the_next_use(text: str) -> None:
    """To the host: the event that the read waits for, in code. To the device: that the source stays as it is."""
    assert "event.synchronize()" in text or re.search("until the cop(y has|ies have) run", text)


def test_there_is_such_advice_in_many_rules() -> None:
    """Rules of syncs and of habits give it."""
    assert len({file.stem for file, _ in ADVICE}) >= 12


@pytest.mark.parametrize("rule", folder.RULES, ids=lambda rule: rule.ID)
def test_why_and_when_it_is_fine_are_written_once(rule: Rule) -> None:
    """In constants: the docstring hasn't their headings, and a match none of their words."""
    assert not re.search(f"^## ({WHY}|{WHEN_FINE})$", rule.__doc__ or "", re.MULTILINE)
    source = inspect.getsource(rule)  # type: ignore[arg-type]
    assert not re.search(r"\b(why|when_fine)=", source)


@pytest.mark.parametrize("rule", folder.RULES, ids=lambda rule: rule.ID)
def test_a_finding_says_the_first_paragraph_in_plain_text(rule: Rule) -> None:
    """One line without marks, as long as a reader reads it; the documentation has all paragraphs."""
    message, doc = diagnose(rule, Match("title", "fix", Removal.NOTHING)), DOCS[rule.ID]
    for text, heading in ((message.why, WHY), (message.when_fine, WHEN_FINE)):
        assert "\n" not in text
        assert "`" not in text
        assert text.endswith(".")
        assert len(text) <= 240
        assert " ".join(doc.sections[heading].replace("`", "").split()).startswith(text)


def test_what_was_seen_of_a_call_follows_why() -> None:
    """Where the rule can't know everything."""
    text = diagnose(item, Match("title", "fix", Removal.NOTHING, seen="It was read 7 times."))
    assert text.why.startswith("The value is ready only after ")
    assert text.why.endswith(" It was read 7 times.")


def test_findings_keep_their_words_without_docstrings() -> None:
    """`python -OO` strips the documentation; why a call waits and when that is fine are said all the same."""
    code = (
        "from syncscan.detect import catalogue; from syncscan.detect.rule import Match, diagnose; "
        "from syncscan.model.finding import Removal; "
        "from syncscan.detect.rules import nonzero; d = diagnose(nonzero, Match('t', 'f', Removal.NOTHING)); "
        "print(d.why[:10], d.when_fine[:8], sorted(catalogue()[0].sections), catalogue()[0].summary == '', sep='|')"
    )
    output = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "The result|When the|['When it is fine', 'Why it stalls']|True"


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_the_cause_is_a_class_of_the_catalogue(doc: RuleDoc) -> None:
    """Only the rule for what no rule knows claims no cause."""
    assert (doc.cause == Cause.UNKNOWN) == (doc.id == "unclassified")


@pytest.mark.parametrize("doc", DOCS.values(), ids=DOCS)
def test_both_examples_are_code_that_makes_a_result(doc: RuleDoc) -> None:
    """Whoever reads a rule can paste both."""
    for heading in ("Example", "Use instead"):
        compile(doc.code(heading), f"{doc.id}: {heading}", "exec")
        assert re.search(r"^\s*result\b.*=", doc.code(heading), re.MULTILINE)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Sparse invariant checks")
@pytest.mark.parametrize(
    "doc", [d for d in DOCS.values() if not NOT_RUN.search(d.sections["Use instead"])], ids=lambda d: d.id
)
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
