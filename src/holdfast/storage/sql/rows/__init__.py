"""Rows of tables that several parts of the store read: which are meant, and those of the logs of job sets."""
