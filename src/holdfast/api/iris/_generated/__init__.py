"""Stubs; written by ``python -m tools.protos``."""
