"""Structured logs on stderr: one line per event, key=value, no colours off a terminal."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(level: str) -> None:
    """Send every event of at least ``level`` (debug, info, warning, error) to stderr."""
    threshold = logging.getLevelNamesMapping().get(level.upper(), logging.WARNING)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # Plain tracebacks: the default shows the values of local variables, and a token may be among them.
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
