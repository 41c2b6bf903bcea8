"""Turns what is asked for at a shell into manifests of jobs, and sends those to the server."""
