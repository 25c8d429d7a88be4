"""Questions that several stages ask of a trace: what the device did when, its period, its engine, what it lacks."""
