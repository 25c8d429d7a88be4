"""Facts of a trace and its source that several stages use: device work, step period, missing data and more."""
