"""Tests of each rewrite: programs that it changes, and programs that it must leave."""
