"""The room of `syncscan check` and `syncscan diff`."""

from syncscan.features import Room, Schema

ROOM = Room(
    commands={"check": "Fail CI when syncs exceed limits, an allow-list or a baseline."},
    more={"diff": "Compare two recordings: which syncs changed, and what the step gained."},
    readers=frozenset({"check", "diff"}),
    schemas={
        "check": Schema(
            "syncscan.gate.check_report:CheckDocument",
            0,
            "`check --format json`: whether recordings are within the limits.",
        ),
        "diff": Schema(
            "syncscan.gate.diff_report:DiffDocument",
            0,
            "`diff --format json`: what changed between recordings or jobs.",
        ),
        "baseline": Schema("syncscan.gate.baseline:Baseline", 1, "`check --update-baseline`: known syncs and races."),
    },
)
