"""The executor: its own loop, state against state, driving one engine."""
