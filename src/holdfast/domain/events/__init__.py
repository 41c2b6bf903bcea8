"""All events. Importing this package registers them (``registry``)."""

from holdfast.domain.events import jobs, operators, workloads

__all__ = ["jobs", "operators", "workloads"]
