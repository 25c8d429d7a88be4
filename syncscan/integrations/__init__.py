"""Viewers that other people wrote: from a trace to what they read and to a local server that shows it."""
