"""Questions that several stages ask of a trace and its source: what the device did when, its period, what it lacks."""
