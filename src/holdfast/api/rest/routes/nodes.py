"""GET /nodes."""

from fastapi import APIRouter, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.context import Use
from holdfast.wire.base import API
from holdfast.wire.catalogue import NodePage
from holdfast.wire.render_catalogue import node_views

router = APIRouter(prefix=f"{API}/nodes", tags=["nodes"])


@router.get("", summary="List nodes", response_model=NodePage, responses=refusals())
def list_all(use: Use) -> Response:
    """List nodes and what is in use on them."""
    nodes, running = use.queries.nodes()
    return answer(NodePage(items=node_views(nodes, running)))
