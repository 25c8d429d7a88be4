"""Benchmarks: how long reading and analysing big traces takes, and how much memory."""
