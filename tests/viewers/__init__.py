"""Tests of syncscan.viewers."""
