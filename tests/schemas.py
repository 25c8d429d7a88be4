"""Generate the JSON Schemas of `--format json` from its types, and compare them with the package's files and versions.

A schema's `$id` is `NAME/MAJOR.MINOR`: a key more raises the minor version, here; a key less or of another type the
major one, where the document says it. Then `pytest tests/report/test_schemas.py --update-golden` writes the file, and
notes what the new version holds.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import textwrap
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

from syncscan import features
from syncscan.features import Schema
from syncscan.model.finding import EVIDENCE

PACKAGE = Path(features.__file__).parent


KINDS = {
    "analysis": Schema(
        "syncscan.report.json:AnalysisDocument", 4, "`analyze --format json`: the analysis of one trace."
    ),
    "saved": Schema(
        "syncscan.report.json:SavedDocument",
        4,
        "`analyze -o NAME.syncscan.json`: an analysis, with the data to continue it.",
    ),
    "whatif": Schema(
        "syncscan.report.whatif_report:WhatifDocument", 2, "`whatif --format json`: the step without chosen syncs."
    ),
    **features.schemas(),
}
"""Name of the file → what it is made of."""


def version(name: str) -> str:
    """The name and major version that a document states."""
    # No type of a capture's data is imported in the program that is captured.
    module = "syncscan.capture.capture_run" if name == "capture" else KINDS[name].document.partition(":")[0]
    return str(features.imported(f"{module}:SCHEMA"))


def file(name: str) -> Path:
    """The schema's file, in its room's folder or in the package's."""
    of_room = [room for room, has in features.rooms().items() if name in has.schemas]
    return PACKAGE.joinpath(*of_room, "schemas", f"{name}.json")


def schema(name: str) -> dict[str, Any]:
    """The schema of this name, strict: no object has a key, and no row an entry, that isn't in it."""
    kind = KINDS[name]
    of, stated = features.imported(kind.document), version(name)
    whole = msgspec.json.schema(of)
    definitions = whole["$defs"]
    top = definitions.pop(whole["$ref"].rpartition("/")[2])
    for title, keys in {"Finding": EVIDENCE, **kind.left_out}.items():
        _leave_out(definitions.get(title, {}), keys)
    types = _structs(msgspec.inspect.type_info(of), {})
    for title, part in (*definitions.items(), (of.__name__, top)):
        _make_strict(part)
        _describe(part, types.get(title))
    top["properties"]["schema"] = {"const": stated}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"syncscan.{name}/{stated.rpartition('/')[2]}.{kind.minor}",
        "title": stated,
        "description": kind.about,
    }
    rest = {key: value for key, value in top.items() if key not in ("title", "description")}
    used = _used(rest, definitions, set())
    return {**head, **rest, "$defs": {key: definitions[key] for key in sorted(used)}}


def _structs(info: Any, result: dict[str, type]) -> dict[str, type]:
    """The Structs that a type leads to, by their names, `found` among them."""
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls.__name__ in result:
            return result
        result[info.cls.__name__] = info.cls
    for name in getattr(info, "__struct_fields__", ()):
        value = getattr(info, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field):
                _structs(part, result)
    return result


def _describe(part: dict[str, Any], struct: type | None) -> None:
    """In place; a key without words of its own has those of its attribute's docstring."""
    for cls in struct.__mro__[:-2] if struct else ():
        for name, words in _attribute_docstrings(cls).items():
            if name in part.get("properties", {}):
                part["properties"][name].setdefault("description", words)


@functools.cache
def _attribute_docstrings(cls: type) -> dict[str, str]:
    if cls.__module__.partition(".")[0] not in ("syncscan", "tests"):
        return {}
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id: inspect.cleandoc(doc.value.value)
        for field, doc in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
    }


def _leave_out(part: dict[str, Any], keys: Iterable[str]) -> None:
    for key in keys if part else ():
        del part["properties"][key]
        part["required"] = [name for name in part["required"] if name != key]


def _used(part: Any, definitions: dict[str, Any], used: set[str]) -> set[str]:
    """The definitions that a part leads to."""
    if isinstance(part, list):
        for inner in part:
            _used(inner, definitions, used)
    elif isinstance(part, dict):
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name and name not in used:
            used.add(name)
            _used(definitions[name], definitions, used)
        for inner in part.values():
            _used(inner, definitions, used)
    return used


def _make_strict(part: dict[str, Any]) -> None:
    """In place."""
    if "properties" in part:
        part["additionalProperties"] = False
    if "enum" in part:
        part["type"] = "string"
    if "description" in part:
        part["description"] = inspect.cleandoc(part["description"])  # Python 3.13 does so itself, to every docstring
    if "prefixItems" in part:
        part["items"] = False


def text(name: str) -> str:
    """The file's content."""
    return json.dumps(schema(name), indent=1, ensure_ascii=False) + "\n"


def facts(name: str) -> list[str]:
    """Return the facts that a document's reader may rely on, a line per key: place, type, and whether it is
    required.
    """
    whole = schema(name)
    return sorted(set(_facts(whole, whole["$defs"], "", ())))


def _facts(part: Any, definitions: dict[str, Any], path: str, within: tuple[str, ...]) -> Iterator[str]:
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        if name not in within:
            yield from _facts(definitions[name], definitions, path, (*within, name))
        return
    plain = {k: part[k] for k in ("type", "const", "minItems", "maxItems", "minimum", "maximum") if k in part}
    if path:
        yield f"{path}: {json.dumps(plain)}"
    for value in part.get("enum", ()):
        yield f"{path}: may be {value}"
    for key, value in part.get("properties", {}).items():
        always = "" if key in part.get("required", ()) else "?"
        yield from _facts(value, definitions, f"{path}.{key}{always}", within)
    for number, value in enumerate(part.get("prefixItems", ())):
        yield from _facts(value, definitions, f"{path}[{number}]", within)
    for key in ("items", "additionalProperties"):
        if isinstance(part.get(key), dict):
            yield from _facts(part[key], definitions, f"{path}[]", within)
    for key in ("anyOf", "allOf"):
        for value in part.get(key, ()):
            yield from _facts(value, definitions, path, within)


def wrong(name: str, document: str | bytes) -> list[str]:
    """Return how a document violates the schema in the package."""
    held = json.loads(file(name).read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(held)
    return [f"{e.json_path}: {e.message}" for e in validator.iter_errors(json.loads(document))]
