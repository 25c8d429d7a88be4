"""The version of syncscan, which reports and captures carry."""

__version__ = "0.1.0"
