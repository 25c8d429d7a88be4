"""`syncscan serve lsp|mcp`: serve an editor or a coding assistant on standard input and output."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("serve")
@click.argument("protocol", type=click.Choice(("lsp", "mcp")))
def command(protocol: str) -> None:
    """Serve an editor (lsp) or a coding assistant (mcp), on standard input and output.

    lsp is the Language Server Protocol: an open Python file shows lint warnings, and findings of the newest recording
    in the workspace folder with their savings. Hovering over one explains why it waits; its quick fix runs the file on
    a simulated GPU and applies the changes that are verified there.

    mcp is the Model Context Protocol, with the tools analyze, explain, whatif, diff, fix and prove. They read only
    files under the folder that the server was started in; fix and prove run programs from there.
    """
    if protocol == "lsp":
        from syncscan.serving import language_server

        language_server.serve()
    else:
        from syncscan.serving import mcp_server

        mcp_server.serve(Path.cwd())
