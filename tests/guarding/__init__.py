"""Mirrors syncscan/guarding."""
