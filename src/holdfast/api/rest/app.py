"""Builds the REST application: gates, error handlers, routes, and its own description at ``/docs``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry

from holdfast import __version__
from holdfast.api.rest import browser, description, errors
from holdfast.api.rest.callers import RequestIdGate
from holdfast.api.rest.context import Health
from holdfast.api.rest.gates import SizeGate, TokenGate, WriteGate
from holdfast.api.rest.listeners import Listeners
from holdfast.api.rest.metrics import Metrics, MetricsGate
from holdfast.api.rest.routes import (
    attempts,
    categories,
    control,
    events,
    jobs,
    jobsets,
    nodes,
    policies,
    queues,
    rehearsals,
    set_control,
    settings,
    submissions,
    system,
)
from holdfast.api.rest.routes import logs as log_routes
from holdfast.api.rest.strict import known_query_only
from holdfast.service.api.use_cases import use_cases_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.errors import HoldfastError
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.logs import LogReader
    from holdfast.ports.store import Store

_NOUNS = (
    system,
    submissions,
    rehearsals,
    jobs,
    log_routes,
    attempts,
    control,
    jobsets,
    set_control,
    policies,
    queues,
    categories,
    settings,
    nodes,
    events,
)
_DESCRIPTION = """Submit jobs, say what happens when they fail, and read why.

Every error is `application/problem+json` with a stable `code` and, for bad input, one entry per problem in `errors`.
"""


@dataclass(frozen=True, slots=True)
class Probes:
    """How the rest of the process shows itself through the API."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    """Where other parts register their metrics."""
    ready: Callable[[], str | None] = lambda: None
    """Says what keeps the server from working, if anything."""
    refusal: Callable[[], HoldfastError | None] = lambda: None
    """Says why nothing may be taken in, if so."""
    stopping: Callable[[], bool] = lambda: False
    """Says that the server is about to stop, so that streams end."""
    make_room: Callable[[], bool] = lambda: False
    """Gives up what is kept of a full disk."""
    actor: str | None = None
    """Who calls, where all callers are this process; otherwise their token tells."""


def create_app(
    *,
    store: Store,
    clock: Clock,
    ids: Ids,
    logs: LogReader,
    token: str | None,
    probes: Probes | None = None,
) -> FastAPI:
    """Build the application.

    Args:
        store: Where everything is kept; closed by whoever opened it.
        clock: The time of submissions and requests.
        ids: Names new jobs.
        logs: Reads what runs wrote.
        token: What callers must show; ``None`` lets everyone in and is for use inside one process.
        probes: Metrics and readiness of the rest of the process.
    """
    probes = probes or Probes()
    metrics = Metrics(probes.registry, store)
    app = FastAPI(
        title="Holdfast",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(known_query_only)],
        # A path with a slash too many is an error like any other, not a redirect that drops the token.
        redirect_slashes=False,
    )
    app.state.use_cases = use_cases_over(store, clock, ids, logs, make_room=probes.make_room)
    app.state.health = Health(metrics, probes.ready)
    app.state.actor = probes.actor
    app.state.listeners = Listeners(store.last_event_seq, probes.stopping)
    errors.install(app)
    for noun in _NOUNS:
        app.include_router(noun.router)
    description.install(app)
    browser.install(app)
    app.add_middleware(SizeGate)
    app.add_middleware(WriteGate, refusal=probes.refusal)
    if token is not None:
        app.add_middleware(TokenGate, token=token, now=clock.now)
    app.add_middleware(MetricsGate, metrics=metrics)
    app.add_middleware(RequestIdGate)
    return app
