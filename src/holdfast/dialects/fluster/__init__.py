"""Fluster's retry configuration, names, sizes and job statuses, as mappings of the fields that are set."""
