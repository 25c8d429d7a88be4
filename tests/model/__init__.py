"""Tests of syncscan.model."""
