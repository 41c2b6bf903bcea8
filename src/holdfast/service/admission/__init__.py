"""Checks before work is accepted: limits, names, dependencies, secrets and files."""
