"""Tests of syncscan.attribute."""
