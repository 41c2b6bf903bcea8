"""Local processes as runs: an engine in the server, and a shim process that is the parent of every run."""

from holdfast.engines.process.engine import ProcessEngine, default_nodes
from holdfast.engines.process.layout import log_path, log_start

__all__ = ["ProcessEngine", "default_nodes", "log_path", "log_start"]
