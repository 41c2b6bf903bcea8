"""Endpoints, one module per noun: read the request, call a use case, write the answer."""
