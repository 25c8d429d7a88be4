"""Guesses from source: shapes, places, exceptions, files."""
