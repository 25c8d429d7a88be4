"""Tests of syncscan.facts."""
