"""Pages of rules and habits, as data: Markdown under `syncs` and `habits`, and what reads it."""
