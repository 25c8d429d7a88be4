"""Programs with and without their syncs, eager and compiled, timed in turn on a GPU; then projections beside them."""
