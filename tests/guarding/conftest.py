"""Gives the tests a machine as with a GPU."""

from tests.as_on_a_gpu import machine, process

__all__ = ["machine", "process"]
