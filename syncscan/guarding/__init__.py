"""Count a running program's syncs, and warn of those that weren't allowed: `syncscan.guard`."""
