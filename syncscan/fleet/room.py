"""The room of `syncscan fleet`."""

from syncscan.features import Room, Schema

ROOM = Room(
    more={"fleet": "Join all ranks of a job: which one delays it, and what removing a sync gains."},
    opens="syncscan.fleet.fleet_command:opens",
    readers=frozenset({"fleet"}),
    schemas={
        "fleet": Schema(
            "syncscan.fleet.document:FleetDocument",
            0,
            "`fleet --format json`: the analysis of a job with several ranks.",
            left_out={"RankAnalysis": ("collectives", "graph")},
        )
    },
)
