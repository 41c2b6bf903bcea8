"""Writes the stubs of the doors that speak Protocol Buffers from their ``.proto`` files.

``python -m tools.protos`` rewrites them, and ``--check`` fails when they are stale.
"""
