"""Tests of syncscan.dryrun."""
