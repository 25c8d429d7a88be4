"""Capture running steps as traces: the schedule, exact source lines, the script runner.

With `dryrun`, the only stage that imports torch; it does so inside functions, never at import.
"""
