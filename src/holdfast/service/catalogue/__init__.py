"""Edits and reads what operators declare: policies, queues, categories, notifiers and settings."""
