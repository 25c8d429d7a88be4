"""Tests of syncscan.detect."""
