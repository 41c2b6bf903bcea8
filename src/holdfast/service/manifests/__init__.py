"""Manifests as text: reads what was sent, checks many together, and writes what is there as its manifest says it."""
