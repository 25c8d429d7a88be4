"""Measure in fresh processes whether a second program is faster than a first, and computes the same."""
