"""What runs on a node of an executor: preempt and cancel it, in the words of ``armadactl``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.cli.armada.line import ArmadaCommand, Flag, FlagKind
from holdfast.cli.armada.queues import list_all

if TYPE_CHECKING:
    from holdfast.cli.armada.invocation import Invocation

_SERVICE = "api.Node"
_FLAGS = (
    Flag("queues", FlagKind.LIST, "Queues of the jobs, separated by commas; without it all.", "q"),
    Flag("priority-classes", FlagKind.LIST, "Priority classes of the jobs, separated by commas.", "p"),
    Flag("all-priority-classes", FlagKind.FLAG, "Jobs of all priority classes.", "a"),
    Flag("executor", FlagKind.TEXT, "Executor of the node, as holdfast get nodes shows it.", "e", required=True),
)
_NEEDS = ("priority-classes", "all-priority-classes")


def _preempt(asked: Invocation) -> int:
    from holdfast.api.armada._generated.node import NodePreemptRequest

    [node] = asked.words
    classes = () if asked.flags["all-priority-classes"] else asked.flags["priority-classes"]
    otherwise = f"error preempting jobs on node {node}: {{}}"
    queues, said = _queues(asked, otherwise)
    executor = asked.flags["executor"]
    meant = f"node: {node}, executor: {executor}, queues: {said}, priority-classes: {','.join(classes)}"
    asked.out(f"Requesting preemption of jobs matching {meant}")
    sent = NodePreemptRequest(name=node, executor=executor, queues=queues, priorityClasses=classes)
    asked.call(_SERVICE, "PreemptOnNode", sent, otherwise)
    return 0


def _cancel(asked: Invocation) -> int:
    from holdfast.api.armada._generated.node import NodeCancelRequest

    [node] = asked.words
    classes = () if asked.flags["all-priority-classes"] else asked.flags["priority-classes"]
    executor = asked.flags["executor"]
    otherwise = f"error cancelling jobs on executor {executor}: {{}}"  # upstream's words, as all of these
    queues, said = _queues(asked, otherwise)
    meant = f"node: {node},  executor: {executor}, queues: {said}, priority-classes: {','.join(classes) or 'all'}"
    asked.out(f"Requesting cancellation of jobs matching {meant}")
    sent = NodeCancelRequest(name=node, executor=executor, queues=queues, priorityClasses=classes)
    asked.call(_SERVICE, "CancelOnNode", sent, otherwise)
    return 0


def _queues(asked: Invocation, otherwise: str) -> tuple[list[str], str]:
    """Return the queues that are meant, all where none is named, and how they are called."""
    named = list(asked.flags["queues"])
    return (named, ",".join(named)) if named else ([one.name for one in list_all(asked, otherwise)], "all")


_verb = partial(ArmadaCommand, "node", words="<name>", count=1, flags=_FLAGS, needs=_NEEDS)
PREEMPT = _verb(summary="Take the places of jobs on a node", run=_preempt)
CANCEL = _verb(summary="Cancel jobs on a node", run=_cancel)
