"""Frozen values that syncscan's stages pass to one another; no I/O."""
