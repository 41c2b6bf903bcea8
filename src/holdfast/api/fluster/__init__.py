"""Fluster's door: its own clients, unmodified, come in here."""
