"""Nodes: what Armada's log service lets operators do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from holdfast.api.armada.calls import answers
from holdfast.api.armada.refusals import Rejected
from holdfast.errors import NotFound
from holdfast.service.operations.nodes import Nodes

if TYPE_CHECKING:
    from holdfast.api.armada._generated import binoculars
    from holdfast.api.armada.calls import Asked


@answers("Cordon", "binoculars.Binoculars")
def cordon(asked: Asked, sent: binoculars.CordonRequest) -> None:
    """Place nothing on a node any more; who cordoned it is told with it, as upstream labels it."""
    reason = f"cordoned by {asked.caller.actor}"
    try:
        Nodes(asked.backend.store, asked.backend.clock).cordon(asked.caller, sent.node_name, reason)
    except NotFound as error:
        told = f'failed to cordon node {sent.node_name}: nodes "{sent.node_name}" not found'
        raise Rejected(grpc.StatusCode.NOT_FOUND, told) from error
