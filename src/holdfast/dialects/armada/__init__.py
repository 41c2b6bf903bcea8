"""Armada's forms: retry policies, jobs, queues and error categories, in its own words."""
