"""The version of syncscan, which reports and captures contain."""

__version__ = "0.1.0"
