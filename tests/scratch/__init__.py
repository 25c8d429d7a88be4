"""Tests of `syncscan.scratch`."""
