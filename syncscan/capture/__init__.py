"""Running steps go in, traces of them come out: the schedule, the exact source lines, the script runner.

With `dryrun`, the only stage that imports torch; it does so inside functions, never at import.
"""
