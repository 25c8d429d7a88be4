"""Lint warnings from source: patterns, places, exceptions, files."""
