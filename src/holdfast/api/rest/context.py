"""What endpoints work with, found through the application's state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from holdfast.api.rest.metrics import Metrics
from holdfast.service.api.use_cases import UseCases


@dataclass(frozen=True, slots=True)
class Health:
    """How the process does."""

    metrics: Metrics
    ready: Callable[[], str | None]
    """Says what keeps the server from working, if anything."""


def _use_cases(request: Request) -> UseCases:
    found: UseCases = request.app.state.use_cases
    return found


def _health(request: Request) -> Health:
    found: Health = request.app.state.health
    return found


Use = Annotated[UseCases, Depends(_use_cases)]
"""A parameter of this type is given the use cases."""
Process = Annotated[Health, Depends(_health)]
"""A parameter of this type is given what is known of the process."""
