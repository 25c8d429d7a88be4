"""Public pull requests that took syncs away, rebuilt small: what was projected for each, and what it gained."""
