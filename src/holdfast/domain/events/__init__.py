"""All events. Importing this package registers them (``registry``)."""

from holdfast.domain.events import jobs, operators, sessions, workloads

__all__ = ["jobs", "operators", "sessions", "workloads"]
