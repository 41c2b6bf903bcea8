"""What operators edit: entries, settings and tokens."""
