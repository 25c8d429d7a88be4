"""Tests of syncscan.integrations."""
