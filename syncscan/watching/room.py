"""The room of `syncscan watch` and `syncscan attach`."""

from syncscan.features import Room, Schema

ROOM = Room(
    more={
        "attach": "Capture or watch a running process.",
        "watch": "Watch a program as it runs, for weeks: step time, waits, lines.",
    },
    opens="syncscan.watching.watch_file:opens",
    in_process=frozenset({"watch"}),
    schemas={
        "watch": Schema(
            "syncscan.watching.watch_file:Window",
            0,
            "A line of kind `window` in a watch's file: some seconds of a run.",
        ),
    },
)
