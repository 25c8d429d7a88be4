"""Facts about habits."""
