"""The room of `syncscan prove`."""

from syncscan.features import Room, Schema

ROOM = Room(
    commands={"prove": "Run two programs alternately: is the change a real gain, and are the results the same?"},
    schemas={
        "proof": Schema("syncscan.proof.outcome:ProofDocument", 0, "`prove --format json`: whether a change is a gain.")
    },
)
