"""Deletes what runs left on the disk."""
