"""Programs with clocks put in by hand, whose whole run `benchmarks.whole_run` compares with a capture's account."""
