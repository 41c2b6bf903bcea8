"""Builds the REST application: gates, error handlers, routes, and its own description at ``/docs``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry

from holdfast import __version__
from holdfast.api.budget import MemoryBudget
from holdfast.api.http.serving import browser, errors, routing
from holdfast.api.http.serving.gates import (
    DoorGate,
    Entrance,
    HostGate,
    JobsGate,
    PeerGate,
    RequestIdGate,
    SizeGate,
    TokenGate,
    WriteGate,
)
from holdfast.api.http.serving.memory import MemoryGate
from holdfast.api.http.serving.metrics import Metrics, MetricsGate
from holdfast.api.http.serving.routing import known_query_only
from holdfast.domain.record import Struct, field
from holdfast.service.listeners import Listeners
from holdfast.service.operations.backend import Backend
from holdfast.wire.problems import ProblemDetails

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp

    from holdfast.domain.audit import Caller
    from holdfast.domain.file_settings import FileSettings
    from holdfast.errors import HoldfastError
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.calls import CallRunner
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.logs import LogReader
    from holdfast.ports.notifications import Sender
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store

_DESCRIPTION = """Submit jobs, say what happens when they fail, and read why.

Every error is `application/problem+json` with a stable `code` and, for bad input, one entry per problem in `errors`.
"""


class Probes(Struct, frozen=True):
    """What the API gets from the rest of the process."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    """Holds the metrics of other parts, too."""
    ready: Callable[[], str | None] = lambda: None
    """Returns what keeps the server from working, if anything."""
    refusal: Callable[[], HoldfastError | None] = lambda: None
    """Returns why the server accepts nothing, or ``None``."""
    stopping: Callable[[], bool] = lambda: False
    """Whether the server is about to stop, so that streams end."""
    streams: int = 100
    """How many clients may follow events at a time."""
    make_room: Callable[[], bool] = lambda: False
    """Releases the space reserved for a full disk; returns whether it had any."""
    written: Callable[[], None] = lambda: None
    """Called after each request that may have written something."""
    sender: Callable[[], Sender] | None = None
    """Makes the sender that tests of notifiers use."""
    secrets: Secrets | None = None
    """Keeps the values of secret variables, if they can be kept."""
    blobs: Blobs | None = None
    """Keeps files that are sent along with jobs, if they can be kept."""
    calls: CallRunner | None = None
    """Runs the callables that doors receive, if anything does."""
    doors: dict[str, ASGIApp] = field(default_factory=dict)
    """The doors that answer on this port, by path prefix."""
    pages: dict[str, ASGIApp] = field(default_factory=dict)
    """What doors answer at single paths of this port to programs; browsers get the server's own pages."""
    budget: MemoryBudget = field(default_factory=MemoryBudget)
    """Counts the memory of requests that any door has accepted and not yet answered."""
    reload: Callable[[Caller], tuple[FileSettings, bool] | None] = lambda _: None
    """Reads the configuration file again, if there is one."""


def create_app(
    *,
    store: Store,
    clock: Clock,
    ids: Ids,
    logs: LogReader,
    entrance: Entrance,
    probes: Probes | None = None,
) -> FastAPI:
    """Build the application.

    Args:
        store: Where everything is kept; the caller closes it.
        clock: The time of submissions and requests.
        ids: Names new jobs.
        logs: Reads what runs wrote.
        entrance: Who is let in.
        probes: What the API gets from the rest of the process.
    """
    probes = probes or Probes()
    metrics = Metrics(probes.registry, store, probes.budget)
    app = FastAPI(
        title="Holdfast",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(known_query_only)],
        redirect_slashes=False,  # a path with a slash too many is an error, not a redirect that drops the token
    )
    app.state.backend = Backend(
        store,
        clock,
        ids,
        logs,
        entrance.owner,
        probes.make_room,
        probes.ready,
        count=metrics.count_jobs,
        metrics=metrics.text,
        sender=probes.sender,
        secrets=probes.secrets,
        blobs=probes.blobs,
        calls=probes.calls,
        account=entrance.account,
        is_group=entrance.is_group,
        as_submitters=entrance.as_submitters,
        reload=probes.reload,
    )
    app.state.entrance = entrance
    app.state.listeners = Listeners(store.last_event_seq, probes.streams, probes.stopping)
    errors.install(app)
    routing.install(app)
    browser.install(app)
    _complete_description(app)
    app.add_middleware(SizeGate, budget=probes.budget)
    app.add_middleware(WriteGate, refusal=probes.refusal, written=probes.written)
    _add_access_gates(app, entrance, clock, probes)
    _add_outer_gates(app, metrics)
    return app


def _add_access_gates(app: FastAPI, entrance: Entrance, clock: Clock, probes: Probes) -> None:
    """Add the gates that decide who comes in; a request meets the last one first."""
    owner_of = partial(entrance.whose, shown=app.state.backend.access.shown)
    if entrance.token is not None:
        app.add_middleware(TokenGate, token=entrance.token, now=clock.now, owner_of=owner_of)
    app.add_middleware(DoorGate, doors=probes.doors, pages=probes.pages)
    if entrance.peer is not None:
        app.add_middleware(PeerGate, peer=entrance.peer, now=clock.now, owner_of=owner_of)
    if entrance.hosts is not None:
        app.add_middleware(HostGate, hosts=entrance.hosts)
    app.add_middleware(JobsGate)


def _add_outer_gates(app: FastAPI, metrics: Metrics) -> None:
    """Add the gates that every request passes, even one that is let in nowhere; a request meets the last one first."""
    app.add_middleware(MetricsGate, metrics=metrics)
    app.add_middleware(MemoryGate)
    app.add_middleware(RequestIdGate)


def _complete_description(app: FastAPI) -> None:
    """Add the model of problems and the token to the OpenAPI document."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(plain())
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign] # the framework's own way to extend the document


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    problem = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["ProblemDetails"] = problem
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document
