"""The room of the pytest plugin."""

from syncscan.features import Room

ROOM = Room(needs=("dryrun", "guarding"))
