"""The room of `syncscan dryrun`."""

from syncscan.features import Room

ROOM = Room(
    commands={"dryrun": "Run a program on a simulated GPU, and list where it would wait."},
    in_process=frozenset({"dryrun"}),
)
