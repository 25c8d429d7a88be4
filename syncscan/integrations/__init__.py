"""Connect other projects' viewers and tools: convert traces for them, and serve them locally."""
