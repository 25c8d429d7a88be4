"""Tests of syncscan.host."""
