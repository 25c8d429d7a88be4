"""The room of `syncscan watch` and `syncscan attach`."""

from syncscan.features import Room, Schema

ROOM = Room(
    more={
        "attach": "Capture or watch a running process, or show what it is executing.",
        "watch": "Show a watched job as it runs: step time, waits, lines.",
    },
    readers=frozenset({"watch"}),
    schemas={
        "watch": Schema(
            "syncscan.watching.record:Window", 0, "A line of kind `window` in a watch's file: some seconds of a run."
        ),
        "watch-ranks": Schema("syncscan.watching.ranks:Ranks", 0, "`fleet --watch --format json`: of a job's ranks."),
    },
)
