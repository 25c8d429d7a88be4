"""The rooms: features that the core doesn't need, each a folder that can be taken away.

A room holds its types, words, commands, schemas and tests. Its `room.toml` says what it offers. The core asks here, and
names no room itself.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FEATURES = (
    *("fixing", "proof", "gate", "dryrun", "viewers", "watching", "fleet", "lint", "serving"),
    *("guarding", "testing", "integrations"),
)
"""Folders of the rooms, in the order in which `--help` lists their commands, and in which they are asked what a word
means."""


class Schema(NamedTuple):
    """A JSON schema: `MODULE:TYPE` of its document, how many additions it had since its version, and what it describes.

    The module's `SCHEMA` is the version; `left_out` names keys of inner types that the document has not. The file is
    `schemas/NAME.json` in the folder of the room, or of the package.
    """

    document: str
    minor: int
    about: str
    left_out: Mapping[str, Sequence[str]] = {}


class Room(NamedTuple):
    """Commands, schemas and needs of a room.

    `commands` and `more` are names of commands with their lines in `--help`, the first above the second; `NAME_command`
    is a command's module. `readers` are those that run no program of the user's, `in_process` those that run one in
    their own process. `needs` names rooms without which this one offers nothing. `rule_notes`, `changes` and `opens`
    are functions, as `MODULE:NAME`: of a rule's id, for a section of its page; of an analysis and a file of
    `fix --format json`, for the analysis with these changes at its findings; and of a word that is no command, for the
    words of the command that it means, none where it isn't the room's.
    """

    commands: Mapping[str, str] = {}
    more: Mapping[str, str] = {}
    readers: Sequence[str] = ()
    in_process: Sequence[str] = ()
    schemas: Mapping[str, Schema] = {}
    needs: Sequence[str] = ()
    rule_notes: str = ""
    changes: str = ""
    opens: str = ""


@functools.cache
def rooms() -> dict[str, Room]:
    """Return the rooms that are there, by folder."""
    folder = Path(__file__).parent
    files = {name: folder / name / "room.toml" for name in FEATURES}
    texts = {name: file.read_text(encoding="utf-8") for name, file in files.items() if file.is_file()}
    there = {name: _room(**tomllib.loads(text)) for name, text in texts.items()}
    return {name: room for name, room in there.items() if there.keys() >= set(room.needs)}


def _room(schemas: Mapping[str, Any] | None = None, **offers: Any) -> Room:
    return Room(schemas={name: Schema(**schema) for name, schema in (schemas or {}).items()}, **offers)


def command_modules() -> dict[str, str]:
    """Return the module of each command of a room."""
    return {
        command: f"syncscan.{name}.{command}_command"
        for name, room in rooms().items()
        for command in (*room.commands, *room.more)
    }


def schemas() -> dict[str, Schema]:
    """Return the schemas of all rooms, by name."""
    return {name: schema for room in rooms().values() for name, schema in room.schemas.items()}


def offered(what: str) -> list[Any]:
    """Return the functions that rooms offer under this name, imported."""
    return [imported(place) for room in rooms().values() if (place := getattr(room, what))]


def imported(place: str) -> Any:
    """Return what `MODULE:NAME` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
