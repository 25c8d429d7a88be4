"""The room of `syncscan lint`."""

from syncscan.features import Room, Schema

ROOM = Room(
    more={"lint": "Find likely waits in source code, without running it."},
    readers=frozenset({"lint"}),
    schemas={"lint": Schema("syncscan.lint.report:LintDocument", 0, "`lint --format json`: lint warnings.")},
)
