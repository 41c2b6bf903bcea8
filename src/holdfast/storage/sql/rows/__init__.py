"""Rows and conditions that several parts of the store share."""
