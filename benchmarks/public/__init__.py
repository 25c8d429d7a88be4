"""Programs that nobody here wrote, unmodified: what a first screen says of them, and what its advice gains."""
