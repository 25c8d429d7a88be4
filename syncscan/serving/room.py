"""The room of `syncscan serve` and `syncscan skill`."""

from syncscan.features import Room

ROOM = Room(
    more={
        "serve": "Serve an editor (lsp), or a coding assistant (mcp).",
        "skill": "Print a SKILL.md for coding agents: analyze, fix, prove, gate, and when to stop.",
    },
    readers=frozenset({"skill"}),
)
