"""Reads manifests in each format that a door accepts."""
