"""The source of a program: its text and tree, and what its names, loops and calls are."""
