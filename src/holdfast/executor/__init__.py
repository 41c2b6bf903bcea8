"""The executor: its own loop, which reconciles desired and observed runs on one engine."""
