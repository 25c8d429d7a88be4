"""Benchmarks: how long reading and analyzing big traces takes, and how much memory."""
