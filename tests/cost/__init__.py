"""Tests of syncscan.cost."""
