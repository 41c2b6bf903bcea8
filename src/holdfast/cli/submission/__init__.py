"""Turns flags and files into manifests of jobs, and sends them to the server."""
