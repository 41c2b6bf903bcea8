"""By what a command finds its server."""
