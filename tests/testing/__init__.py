"""Mirrors syncscan/testing, and has the tests of the plugin for pytest."""
