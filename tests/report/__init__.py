"""Tests of syncscan.report."""
