"""From an Analysis to text: one renderer a file, each a pure function."""
