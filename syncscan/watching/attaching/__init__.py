"""Reach into a process of Python's that was started without syncscan, and have it capture, watch or tell of itself."""
