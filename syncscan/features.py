"""The rooms: features that the core doesn't need, each a folder that can be taken away.

A room holds its types, words, commands, schemas and tests. Its `room.py` says what it offers, without importing any of
it. The core asks here, and names no room itself.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

FEATURES = ("proof",)
"""Folders of the rooms, in the order in which `--help` lists their commands."""


class Schema(NamedTuple):
    """A JSON schema: `MODULE:TYPE` of its document, how many additions it had since its version, and what it describes.

    The module's `SCHEMA` is the version. The file is `schemas/NAME.json` in the folder of the room, or of the package.
    """

    document: str
    minor: int
    about: str


class Room(NamedTuple):
    """Commands, schemas and needs of a room.

    `commands` and `more` are names of commands with their lines in `--help`, the first above the second; `NAME_command`
    is a command's module. `readers` are those that run no program of the user's. `needs` names rooms without which this
    one offers nothing.
    """

    commands: Mapping[str, str] = {}
    more: Mapping[str, str] = {}
    readers: frozenset[str] = frozenset()
    schemas: Mapping[str, Schema] = {}
    needs: tuple[str, ...] = ()


@functools.cache
def rooms() -> dict[str, Room]:
    """Return the rooms that are there, by folder."""
    folder = Path(__file__).parent
    there = {name: _room(name) for name in FEATURES if (folder / name / "room.py").is_file()}
    return {name: room for name, room in there.items() if there.keys() >= set(room.needs)}


def _room(name: str) -> Room:
    room: Room = importlib.import_module(f"syncscan.{name}.room").ROOM
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


def imported(place: str) -> Any:
    """Return what `MODULE:NAME` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
