"""Engines run programs: local processes, and a simulation for tests."""
