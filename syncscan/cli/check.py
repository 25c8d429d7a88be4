"""`syncscan check TRACE…`: compare recordings with a project's limits, and pass or fail in CI."""

from __future__ import annotations
