"""Fluster's door, for its own clients, unmodified."""
