"""The documentation: pages that people wrote, and what generates the others; tests/test_docs.py runs what they show."""
