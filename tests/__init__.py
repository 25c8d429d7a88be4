"""The tests mirror the package: what proves syncscan/load/x.py is in tests/load/test_x.py."""
