"""Tests of syncscan.source."""
