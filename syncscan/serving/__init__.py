"""Serve an editor and a coding assistant."""
