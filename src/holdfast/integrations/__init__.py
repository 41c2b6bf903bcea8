"""Holdfast in the libraries people already use; each module needs its library, and nothing else imports it."""
