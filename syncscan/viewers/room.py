"""The room of `syncscan open` and `syncscan annotate`."""

from syncscan.features import Room

ROOM = Room(
    commands={"open": "Open a trace in TensorBoard's Trace View, in Perfetto or as HTML."},
    more={"annotate": "Write a copy of a trace with findings drawn on separate tracks."},
    readers=frozenset({"annotate"}),
)
