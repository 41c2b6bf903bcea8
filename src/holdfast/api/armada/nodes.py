"""Nodes: cordon them, and take the places of what runs on them or cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.armada.calls import CALLS
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.domain.record import evolve
from holdfast.errors import HoldfastError, NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.nodes import Nodes

if TYPE_CHECKING:
    from holdfast.api.armada._generated import binoculars, node
    from holdfast.api.connect.calls import Rpc
    from holdfast.ports.store import JobFilter

CANCELLED_ON_NODE = "cancelled by CancelOnNode"
"""The reason, as upstream records it."""


@CALLS.answers("Cordon", "binoculars.Binoculars")
def cordon(call: Rpc, request: binoculars.CordonRequest) -> None:
    """Cordon a node; the reason names who did it, as upstream's label does."""
    reason = f"cordoned by {call.caller.actor}"
    try:
        Nodes(call.backend.store, call.backend.clock).cordon(call.caller, request.node_name, reason)
    except NotFound as error:
        message = f'failed to cordon node {request.node_name}: nodes "{request.node_name}" not found'
        raise Rejected(Code.NOT_FOUND, message) from error


@CALLS.answers("PreemptOnNode", "api.Node")
def preempt_on_node(call: Rpc, request: node.NodePreemptRequest) -> None:
    """Preempt the jobs of some queues that run on a node of an executor; without queues, none."""
    where = _on_node(call, request, "preempt")
    try:
        JobBatches(call.backend).preempt(call.caller, where, node=request.name)
    except HoldfastError as error:
        raise Rejected.of(error, f"error preempting jobs on executor {request.name}: {error.message}") from error


@CALLS.answers("CancelOnNode", "api.Node")
def cancel_on_node(call: Rpc, request: node.NodeCancelRequest) -> None:
    """Cancel the jobs of some queues that run on a node of an executor; without queues, none."""
    where = _on_node(call, request, "cancel")
    try:
        JobBatches(call.backend).cancel(call.caller, where, CANCELLED_ON_NODE)
    except HoldfastError as error:
        raise Rejected.of(error, f"error canceling jobs on executor {request.name}: {error.message}") from error


def _on_node(call: Rpc, request: node.NodePreemptRequest | node.NodeCancelRequest, verb: str) -> JobFilter:
    """Return the jobs to act on; none if there is no such node, which upstream does not check.

    Upstream's refusals have no code, which clients take for a fault of the server; here they are INVALID_ARGUMENT.
    """
    for value, what in ((request.name, "name"), (request.executor, "id")):
        if not value:
            refuse(f"must provide non-empty executor {what} when determining what to {verb}")
    where, jobs = JobBatches(call.backend).on_node(call.caller, request.name, request.executor)
    classes = request.priorityClasses
    on_queues = (job for job in jobs if job.queue in request.queues)
    ids = frozenset(job.id for job in on_queues if not classes or armada.priority_class_of(job) in classes)
    return evolve(where, ids=ids)
