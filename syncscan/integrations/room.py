"""The room of callbacks of trainers."""

from syncscan.features import Room

ROOM = Room()
