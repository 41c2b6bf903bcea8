"""Kubernetes Job semantics, pure: which pods to start, when a Job has failed or is complete, and why."""
