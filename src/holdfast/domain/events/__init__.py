"""What can happen, as values. Importing this package registers every event (``registry``)."""

from holdfast.domain.events import jobs, operators, workloads

__all__ = ["jobs", "operators", "workloads"]
