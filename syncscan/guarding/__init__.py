"""Syncs of a running program go in, counts and warnings of those that nobody has allowed come out: `syncscan.guard`."""
