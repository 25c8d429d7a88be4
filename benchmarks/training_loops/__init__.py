"""Small training programs in the shapes that public ones have; a dry run of each tells which lines wait."""
