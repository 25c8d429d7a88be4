"""The code, its tests and its benchmarks keep to docs/style.md."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = sorted(path.name for path in (ROOT / "syncscan").iterdir() if path.is_dir() and (path / "__init__.py").exists())
RECORDED = ROOT / "syncscan" / "capture" / "logged_step.py"
"""The program that the README's recording shows line by line: it stays as it was recorded."""
SAMPLES = (Path(__file__), ROOT / "tests" / "lint" / "code")
"""This file, which spells out what it refuses, and programs that lint is tried on."""
OPENINGS = re.compile(r"(What |The same|That of |Of |From )")
"""Openings of docstrings that don't say what a function does or returns."""
NO_VERBS = re.compile(
    r"(`|(Whether|Where|When|Why|How|Who|Which|An?|The|All|As|By|With|Those|These|Each|Another|No|Nothing|Behind) )"
)
"""Openings of functions' docstrings that name no verb."""
NAMES = frozenset(
    "told said found kept asked mine gone made each others here there known one whole rest what such own where".split()
)
"""Names that don't say what a value is."""
LONGEST_SCOPE = 3
"""Lines in which such a name may be used."""
PARAMETERS = {"analyze_fleet": "where", "build": "where"}
"""Parameters of public functions, and of programs that recordings show, that keep such a name."""
BRITISH = re.compile(
    r"\b\w*(?:nchronis|nalys[ei]|okenis|olour|ehaviour|onour)(?:e[ds]?|ing|ation|ed)?\w*\b", re.IGNORECASE
)
AMERICAN_TOO = re.compile(r"analysis|analyses", re.IGNORECASE)
PUBLIC = re.compile(r'unsynchronised_us|`tokenise`|"tokenise"|labelledby')
"""British names that stay: a key and a name of recordings, an attribute of ARIA."""
BRITISH_TOO = re.compile(
    r"\b(?:neighbours?|favour\w*|centre[ds]?|labell\w+|modell\w+|neutralis\w+|normalis\w+|optimis\w+|factoris\w+|"
    r"serialis\w+|initialis\w+|recognis\w+|summaris\w+|utilis\w+|travell\w+)\b"
)
"""More British spellings, refused in what users read."""
DIALECT = {
    r"pretended (?:device|GPU)": "simulated device",
    r"every some": "every N",
    r"(?:once|times?) a step": "per step",
    r"means a step": "mean per step",
    r"a row a \w+": "one row per …",
    r"stands? idle": "is idle",
    r"nobody knows": "unknown",
    r"Python's lock": "the GIL",
    r"spares? it": "avoids this",
    r"can't be told": "is unknown",
    r"all the same": "still",
    r"It is meant": "This is intended",
    r"earlier work": "backlog",
    r"taking turns": "alternating",
    r"hold(?:s|ing)? (?:the host|it) (?:back|up)": "block",
    r"held up": "delayed",
    r"hunting for": "looking for",
    r"guilty": "the line",
    r"what is said": "name the thing",
    r"in so far": "if",
}
"""Words of no other project, with what to write instead: refused in sentences that users read."""
SENTENCES = re.compile("|".join(rf"\b{words}\b" for words in DIALECT))

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def bad_openings(tree: ast.Module) -> list[str]:
    """Docstrings of modules, classes, functions and attributes that open with one of `OPENINGS`."""
    bodies = [n.body for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | FUNCTIONS)]
    strings = [s for body in bodies for s in body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)]
    docs = [s.value.value for s in strings if isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)]
    return [doc.splitlines()[0] for doc in docs if OPENINGS.match(doc)]


def without_verb(tree: ast.Module) -> list[str]:
    """First lines of functions' docstrings that don't say what the function does; properties may name their value."""
    plain = (f for f in functions(tree) if not any("property" in ast.unparse(d) for d in f.decorator_list))
    docs = ((ast.get_docstring(function) or "").partition("\n")[0] for function in plain)
    return [doc for doc in docs if NO_VERBS.match(doc)]


def own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without functions and classes inside of it and short comprehensions."""
    for node in ast.iter_child_nodes(function):
        short = isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) and lines_of(node) <= 3
        if not short and not isinstance(node, ast.ClassDef | FUNCTIONS):
            yield node
            yield from own_nodes(node)


def lines_of(node: ast.AST) -> int:
    return node.end_lineno - node.lineno + 1  # type: ignore[attr-defined,no-any-return]


def bad_names(tree: ast.Module) -> list[str]:
    """Parameters and locals of `NAMES` that are used over more than `LONGEST_SCOPE` lines."""
    wrong = []
    for function in functions(tree):
        names = [node for node in own_nodes(function) if isinstance(node, ast.Name) and node.id in NAMES]
        for name in dict.fromkeys(node.id for node in names):
            bound = [n.lineno for n in names if n.id == name and isinstance(n.ctx, ast.Store)]
            last = max(n.lineno for n in names if n.id == name)
            if bound and last - min(bound) >= LONGEST_SCOPE:
                wrong.append(f"{name}, line {min(bound)}")
        body = function.body[ast.get_docstring(function) is not None :]
        long = body and body[-1].end_lineno - body[0].lineno >= LONGEST_SCOPE  # type: ignore[operator]
        arguments = (*function.args.args, *function.args.kwonlyargs, *function.args.posonlyargs) if long else ()
        named = (a for a in arguments if a.arg in NAMES and PARAMETERS.get(function.name) != a.arg)
        wrong += [f"{argument.arg}, line {argument.lineno}" for argument in named]
    return wrong


def british(text: str) -> list[str]:
    """British spellings of the words that CUDA and torch spell the American way."""
    return [word for word in BRITISH.findall(PUBLIC.sub("", text)) if not AMERICAN_TOO.search(word)]


SHARED_TYPES = {"CaptureCallback"}
"""Names of types that occur twice on purpose: one callback per framework, imported from its own module."""
SHARED_SUBJECTS = {"api", "races", "warned", "remedies", "compile_breaks", "dry_run", "document", "github"}
"""Subjects of files in several rooms that are neither a value of `model`, nor a command, nor a call that syncs: what a
room offers, and its JSON."""


def types_by_name(paths: Iterator[Path]) -> dict[str, list[Path]]:
    """Group the files that define a type by the type's name."""
    files: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                files[node.name].append(path.relative_to(ROOT))
    return files


def lost_strings(tree: ast.AST) -> list[int]:
    """Lines of strings that stand behind a `return`: the rest of a sentence that is cut off."""
    bodies = (body for node in ast.walk(tree) for name in ("body", "orelse") if (body := getattr(node, name, None)))
    pairs = (pair for body in bodies if isinstance(body, list) for pair in pairwise(body))
    return [
        after.lineno
        for before, after in pairs
        if isinstance(before, ast.Return) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    ]


def faults(path: Path) -> list[str]:
    """The openings, names and spellings of a file that docs/style.md refuses, each with the file."""
    text = path.read_text()
    tree = ast.parse(text)
    lost = (f"a lost string, line {line}" for line in lost_strings(tree))
    return [f"{path.relative_to(ROOT)}: {w}" for w in (*bad_openings(tree), *bad_names(tree), *british(text), *lost)]


def read_by_users(path: Path) -> str:
    """Text that users read: pages and templates as they are, of a module its strings without docstrings."""
    if path.suffix != ".py":
        return path.read_text()
    tree = ast.parse(path.read_text())
    bodies = [n.body for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | FUNCTIONS)]
    docs = {id(s.value) for body in bodies for s in body if isinstance(s, ast.Expr)}
    values = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs)
    return "\n".join(n.value for n in values if isinstance(n.value, str))


PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(
        page
        for folder in ("howto", "explanation", "reference")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
    *sorted((ROOT / "notebooks").glob("*.ipynb")),
    *sorted((ROOT / "syncscan").rglob("*.j2")),
    *sorted({*(ROOT / "syncscan").rglob("*.py")} - {RECORDED}),
]


def foreign_words(text: str) -> list[str]:
    """The words of `DIALECT` and British spellings of a text."""
    plain = PUBLIC.sub("", text)
    return [*SENTENCES.findall(plain), *BRITISH_TOO.findall(plain)]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("Read it every some steps.", ["every some"]),
        ("The pretended device stands idle.", ["pretended device", "stands idle"]),
        ("neighbours of a range", ["neighbours"]),
        ("Read it every N steps.", []),
    ],
)
def test_words_of_no_other_project_are_refused(sentence: str, words: list[str]) -> None:
    assert foreign_words(sentence) == words


@pytest.mark.slow
def test_sentences_that_users_read_are_plain() -> None:
    """Reports, help, errors, rules, pages and notebooks; the style page shows what not to write."""
    pages = [page for page in PAGES if page.name != "style.md"]
    assert [f"{p.relative_to(ROOT)}: {w}" for p in pages for w in foreign_words(read_by_users(p))] == []


def test_pages_are_spelled_as_in_america() -> None:
    pages = [page for page in PAGES if page.suffix in {".md", ".ipynb", ".j2"} and page.name != "style.md"]
    assert [f"{p.relative_to(ROOT)}: {w}" for p in pages for w in british(p.read_text())] == []


def test_a_docstring_that_says_nothing_is_refused() -> None:
    tree = ast.parse('def f():\n    """The same, of all."""\ndef g():\n    """Return the rows of a trace."""')
    assert bad_openings(tree) == ["The same, of all."]


def test_a_docstring_without_a_verb_is_refused() -> None:
    tree = ast.parse('def f():\n    """Whether it runs."""\n@property\ndef g():\n    """The rows."""')
    assert without_verb(tree) == ["Whether it runs."]


@pytest.mark.slow
def test_functions_of_the_package_say_what_they_do() -> None:
    paths = sorted({*(ROOT / "syncscan").rglob("*.py")} - {RECORDED})
    wrong = [f"{path.relative_to(ROOT)}: {doc}" for path in paths for doc in without_verb(ast.parse(path.read_text()))]
    assert wrong == []


def test_an_attribute_s_docstring_that_says_nothing_is_refused() -> None:
    tree = ast.parse(
        'N = 3\n"""Of those."""\nclass C:\n    n: int\n    """What it has."""\n    m: int\n    """Rows."""'
    )
    assert bad_openings(tree) == ["Of those.", "What it has."]


def test_a_listed_name_is_refused_beyond_three_lines() -> None:
    short, long = (
        "def f():\n    found = 1\n    return found\n",
        "def g():\n    told = 1\n    a = 1\n    b = 2\n    return told\n",
    )
    assert bad_names(ast.parse(short + long)) == ["told, line 5"]


def test_a_listed_parameter_is_refused_in_a_long_function() -> None:
    """A short one says by its body what the parameter is."""
    short, long = (
        "def f(what):\n    return what\n",
        'def g(what):\n    """Draw."""\n    a = 1\n    b = 2\n    c = 3\n    return what\n',
    )
    assert bad_names(ast.parse(short + long)) == ["what, line 3"]


def test_a_string_behind_a_return_is_refused() -> None:
    """It was to be the sentence's end."""
    code = 'def f():\n    if 1:\n        return "It ends "\n        "here."\n    return ""\n'
    assert lost_strings(ast.parse(code)) == [4]


def test_british_spelling_is_refused() -> None:
    assert british("cudaStreamSynchronize synchronises; an analysis is analysed") == ["synchronises", "analysed"]


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_a_room_keeps_to_the_style(room: str) -> None:
    """Its docstrings say what is done or returned, its names are nouns, its spelling is American."""
    wrong = []
    for path in sorted((ROOT / "syncscan" / room).rglob("*.py")):
        wrong += faults(path)
    assert wrong == []


def test_the_package_s_own_modules_keep_to_the_style() -> None:
    assert [fault for path in sorted((ROOT / "syncscan").glob("*.py")) for fault in faults(path)] == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["tests", "benchmarks"])
def test_tests_and_benchmarks_keep_to_the_style(folder: str) -> None:
    """Their docstrings and names are held to the same rules as the package's."""
    paths = sorted(path for path in (ROOT / folder).rglob("*.py") if not set(SAMPLES) & {path, *path.parents})
    assert [fault for path in paths for fault in faults(path)] == []


@pytest.mark.slow
def test_no_two_types_have_one_name() -> None:
    """A reader who looks a type up finds one definition."""
    files = types_by_name(path for path in (ROOT / "syncscan").rglob("*.py"))
    twice = {name: paths for name, paths in files.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in SHARED_TYPES} == {}


def test_files_of_one_name_have_one_subject() -> None:
    """They are a value of `model` or a command, with what renders it, or parts about one call that syncs."""
    rooms = defaultdict(list)
    for path in (ROOT / "syncscan").rglob("*.py"):
        rooms[path.stem].append(path.relative_to(ROOT / "syncscan").parent.as_posix())
    folders = {"model", "cli", "detect/rules"}
    strangers = {name: at for name, at in rooms.items() if len(at) > 1 and not folders & set(at)}
    assert sorted(strangers.keys() - {"__init__"} - SHARED_SUBJECTS) == []
