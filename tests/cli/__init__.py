"""Tests of syncscan.cli."""
