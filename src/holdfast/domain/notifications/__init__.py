"""Notifications about work: their occasions, contents and wording."""
