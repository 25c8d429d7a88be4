"""Tests of syncscan.whatif."""
