"""Programs that race, beside their right forms."""
