"""Tests of syncscan.serving."""
