"""Tests of the job of many ranks."""
