"""Nodes: cordon them, and take the places of what runs on them or cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from holdfast.api.armada.calls import answers
from holdfast.api.armada.refusals import ArmadaRefusal, refuse
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


@answers("Cordon", "binoculars.Binoculars")
def cordon(asked: Rpc, sent: binoculars.CordonRequest) -> None:
    """Place nothing on a node any more; who cordoned it is told with it, as upstream labels it."""
    reason = f"cordoned by {asked.caller.actor}"
    try:
        Nodes(asked.backend.store, asked.backend.clock).cordon(asked.caller, sent.node_name, reason)
    except NotFound as error:
        told = f'failed to cordon node {sent.node_name}: nodes "{sent.node_name}" not found'
        raise ArmadaRefusal(grpc.StatusCode.NOT_FOUND, told) from error


@answers("PreemptOnNode", "api.Node")
def preempt_on_node(asked: Rpc, sent: node.NodePreemptRequest) -> None:
    """Take the places of the jobs of some queues that run on a node of an executor; without queues of none."""
    where = _on_node(asked, sent, "preempt")
    try:
        JobBatches(asked.backend).preempt(asked.caller, where, node=sent.name)
    except HoldfastError as error:
        raise ArmadaRefusal.of(error, f"error preempting jobs on executor {sent.name}: {error.message}") from error


@answers("CancelOnNode", "api.Node")
def cancel_on_node(asked: Rpc, sent: node.NodeCancelRequest) -> None:
    """Cancel the jobs of some queues that run on a node of an executor; without queues none."""
    where = _on_node(asked, sent, "cancel")
    try:
        JobBatches(asked.backend).cancel(asked.caller, where, CANCELLED_ON_NODE)
    except HoldfastError as error:
        raise ArmadaRefusal.of(error, f"error canceling jobs on executor {sent.name}: {error.message}") from error


def _on_node(asked: Rpc, sent: node.NodePreemptRequest | node.NodeCancelRequest, verb: str) -> JobFilter:
    """Return which jobs are meant, none where there is no such node: upstream asks nobody whether there is.

    Its refusals have no code there, which clients see as a fault of the server; here they are of what was sent.
    """
    for given, what in ((sent.name, "name"), (sent.executor, "id")):
        if not given:
            refuse(f"must provide non-empty executor {what} when determining what to {verb}")
    where, jobs = JobBatches(asked.backend).on_node(asked.caller, sent.name, sent.executor)
    classes = sent.priorityClasses
    meant = (one for one in jobs if one.queue in sent.queues)
    ids = frozenset(one.id for one in meant if not classes or armada.priority_class_of(one) in classes)
    return evolve(where, ids=ids)
