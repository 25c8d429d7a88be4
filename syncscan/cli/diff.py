"""`syncscan diff BEFORE AFTER`: compare recordings of two states of a program."""

from __future__ import annotations
