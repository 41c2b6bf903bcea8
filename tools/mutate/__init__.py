"""Breaks the code in many small ways, one at a time, and requires that a test notices each."""
