"""The room of `syncscan.guard`."""

from syncscan.features import Room

ROOM = Room()
