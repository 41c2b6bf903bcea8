"""Serves the endpoints over HTTP: ``create_app`` in ``app``."""
