"""Tests of `syncscan.fixing`."""
