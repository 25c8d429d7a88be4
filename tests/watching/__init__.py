"""Watches, and what reads them."""
