"""Tests of what a project holds an analysis to."""
