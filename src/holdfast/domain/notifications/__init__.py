"""Notifications about work: when, what, and in which words."""
