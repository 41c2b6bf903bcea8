"""Deletes the files of runs."""
