"""Protocols for what the loops and use cases need from outside; adapters live elsewhere."""
