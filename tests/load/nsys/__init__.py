"""Tests of syncscan.load."""
