"""A file a pull request: `before` and `after` return the same step with its syncs and without them."""
