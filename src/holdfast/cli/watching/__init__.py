"""Follows work: prints its logs, waits for its states, and handles Ctrl-C."""
