"""Fail a test for its syncs, with line, chain and fix: the parts that `syncscan.pytest_plugin` uses."""
