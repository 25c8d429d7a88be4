"""Mirrors `syncscan.capture`."""
