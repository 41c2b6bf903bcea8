"""The addresses of the REST API: reads parameters, calls an operation, builds the answer."""
