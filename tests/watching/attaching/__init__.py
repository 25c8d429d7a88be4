"""Attaching to processes that run."""
