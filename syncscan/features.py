"""The rooms: features that the core doesn't need, each a folder that can be taken away.

A room holds its types, words, commands, schemas and tests. Its `room.py` says what it offers, without importing any of
it. The core asks here, and names no room itself.
"""

from __future__ import annotations

import functools
import importlib
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
    left_out: Mapping[str, tuple[str, ...]] = {}


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
    readers: frozenset[str] = frozenset()
    in_process: frozenset[str] = frozenset()
    schemas: Mapping[str, Schema] = {}
    needs: tuple[str, ...] = ()
    rule_notes: str = ""
    changes: str = ""
    opens: str = ""


@functools.cache
def rooms() -> dict[str, Room]:
    """Return the rooms that are there, by folder."""
    folder = Path(__file__).parent
    files = {name: folder / name / "room.py" for name in FEATURES}
    there = {name: _room(file) for name, file in files.items() if file.is_file()}
    return {name: room for name, room in there.items() if there.keys() >= set(room.needs)}


def _room(file: Path) -> Room:
    """Run a room's `room.py`, and not the package that it lies in, whose import may take long."""
    room: Room = runpy.run_path(str(file))["ROOM"]
    return room


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
