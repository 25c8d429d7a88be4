"""Two programs go in, whether the second is faster and computes the same comes out; each runs in fresh processes."""
