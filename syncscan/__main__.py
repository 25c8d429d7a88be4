"""Run the command line as `python -m syncscan`."""

from syncscan.cli import main

main()
