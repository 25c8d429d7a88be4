"""Facts about libraries, checked on a GPU: with their defaults, and with the switch that a fix names."""
