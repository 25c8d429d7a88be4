"""Tests of syncscan.proof."""
