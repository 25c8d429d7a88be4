"""The room of `syncscan fix`."""

from syncscan.features import Room, Schema

ROOM = Room(
    commands={"fix": "Rewrite code that waits for the GPU, and verify the patch without a GPU."},
    schemas={
        "fix": Schema("syncscan.fixing.document:PatchDocument", 0, "`fix --format json`: a patch that removes waits.")
    },
    needs=("dryrun", "proof"),
    rule_notes="syncscan.fixing.rewrites:section",
    changes="syncscan.fixing.document:with_changes",
)
