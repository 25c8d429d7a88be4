"""`python -m syncscan`: the command line."""

from syncscan.cli import main

main()
