"""What answers here and whether it works: /healthz, /readyz, /metrics and /api/v1/version."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from holdfast import __version__
from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.context import Process, Use
from holdfast.errors import Unavailable
from holdfast.wire.base import API
from holdfast.wire.catalogue import Health, VersionView

router = APIRouter(tags=["system"])


@router.get("/healthz", summary="Is the process alive?", response_model=Health, responses=refusals())
def healthz() -> Response:
    """Answer; needs no token."""
    return answer(Health(status="ok"))


@router.get("/readyz", summary="Can the server work?", response_model=Health, responses=refusals())
def readyz(use: Use, process: Process) -> Response:
    """Answer 503 with the reason when the store or a loop cannot work; needs no token."""
    if why := process.ready():
        raise Unavailable(why)
    use.store.catalogue_version()  # asked last: a database that hangs would keep what is known from being told
    return answer(Health(status="ok"))


@router.get(
    "/metrics",
    summary="Read metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **refusals()},
)
def metrics(process: Process) -> Response:
    """Read metrics as Prometheus text."""
    return Response(process.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get(f"{API}/version", summary="Read the version", response_model=VersionView, responses=refusals())
def version() -> Response:
    """Read what answers here."""
    return answer(VersionView(version=__version__))
