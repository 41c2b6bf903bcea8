"""Fluster's words: its retry configuration, names, sizes and job statuses, as plain mappings of what is set."""
