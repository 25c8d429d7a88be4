"""Watch programs that run, attach to them, and read what was watched."""
