"""Hostile and damaged traces through every command: what must hold whatever a file says (docs/threat-model.md)."""
