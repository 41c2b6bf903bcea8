"""Queues: create, update, cordon, read and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc

from holdfast.api.armada._generated import submit
from holdfast.api.armada.calls import answers
from holdfast.api.armada.plain import fill, plain
from holdfast.api.armada.refusals import ArmadaRefusal, refuse
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.errors import Forbidden, HoldfastError, InvalidManifest, NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.catalogue import Policies, Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.api.connect.calls import Rpc

_BOTH = ("api.QueueService", "api.Submit")


@answers("CreateQueue", *_BOTH)
def create_queue(asked: Rpc, sent: submit.Queue) -> None:
    """Create a queue, or replace the one of its name, as upstream does; a new one without an owner is the caller's."""
    owned = submit.Queue(user_owners=[asked.caller.principal.name])
    owned.MergeFrom(sent)
    new = sent if sent.user_owners else owned
    _put(asked, sent, new, invalid_as="error validating queue: {}", else_as="error creating queue: {}")


@answers("UpdateQueue", *_BOTH)
def update_queue(asked: Rpc, sent: submit.Queue) -> None:
    """Replace a queue, or create it, as upstream does; what is left out of policies and owners is removed."""
    _put(asked, sent, sent, invalid_as="error: {}", else_as="error updating queue: {}", made=armada.updated_queue)


def _put(
    asked: Rpc,
    sent: submit.Queue,
    new: submit.Queue,
    *,
    invalid_as: str,
    else_as: str,
    made: Callable[[dict[str, Any], Queue | None], Queue] = armada.read_queue,
) -> None:
    """Store a queue as it was sent, or if there is none of its name, as it is then."""
    known = {policy.name for policy in Policies(asked.backend.store).list(asked.caller)}
    unknown = [name for name in sent.retry_policies if name not in known]
    try:
        armada.read_queue(plain(sent), None)
        if unknown:
            quoted = ", ".join(f'"{name}"' for name in unknown)
            refuse(else_as.format(f"retry policies do not exist: {quoted}"))
        Queues(asked.backend.store).edit(
            asked.caller, sent.name, lambda before: made(plain(sent if before else new), before)
        )
    except InvalidManifest as error:
        refuse(invalid_as.format(error.problems[0].message), error.problems)
    except HoldfastError as error:
        told = error.problems[0].message if error.problems else error.message
        raise ArmadaRefusal.of(error, else_as.format(told)) from error


@answers("CreateQueues", *_BOTH)
def create_queues(asked: Rpc, sent: submit.QueueList) -> submit.BatchQueueCreateResponse:
    """Create many queues, and say which of them could not be."""
    answer = submit.BatchQueueCreateResponse()
    for queue, error in _each(asked, sent, create_queue):
        answer.failed_queues.add(queue=queue, error=error)
    return answer


@answers("UpdateQueues", *_BOTH)
def update_queues(asked: Rpc, sent: submit.QueueList) -> submit.BatchQueueUpdateResponse:
    """Replace many queues, and say which of them could not be."""
    answer = submit.BatchQueueUpdateResponse()
    for queue, error in _each(asked, sent, update_queue):
        answer.failed_queues.add(queue=queue, error=error)
    return answer


def _each(
    asked: Rpc, sent: submit.QueueList, put: Callable[[Rpc, submit.Queue], None]
) -> Iterator[tuple[submit.Queue, str]]:
    for queue in sent.queues:
        try:
            put(asked, queue)
        except ArmadaRefusal as error:
            yield queue, error.in_go()


@answers("DeleteQueue", *_BOTH)
def delete_queue(asked: Rpc, sent: submit.QueueDeleteRequest) -> None:
    """Delete a queue; one that is not there is deleted already, as upstream has it."""
    try:
        Queues(asked.backend.store).delete(asked.caller, sent.name)
    except NotFound:
        return
    except Forbidden as error:
        raise ArmadaRefusal.of(error, f"error deleting queue {sent.name}: {error.message}") from error
    except HoldfastError as error:
        refuse(f"error deleting queue {sent.name}: {error.message}", error.problems)


@answers("GetQueue", *_BOTH)
def get_queue(asked: Rpc, sent: submit.QueueGetRequest) -> submit.Queue:
    """Read a queue."""
    queue = _found(asked, sent.name)
    if queue is None:
        raise ArmadaRefusal(grpc.StatusCode.NOT_FOUND, f'error: could not find queue "{sent.name}"')
    return _message(queue)


@answers("GetQueues", *_BOTH)
def get_queues(asked: Rpc, sent: submit.StreamingQueueGetRequest) -> Iterator[submit.StreamingQueueMessage]:
    """Read all queues, or so many, by name; a marker ends them."""
    queues = Queues(asked.backend.store).list(asked.caller)
    for queue in queues[: sent.num or None]:
        yield submit.StreamingQueueMessage(queue=_message(queue))
    yield submit.StreamingQueueMessage(end=submit.EndMarker())


@answers("CordonQueue", "api.QueueService")
def cordon_queue(asked: Rpc, sent: submit.QueueCordonRequest) -> None:
    """Have a queue start no more jobs; its policies and permissions stay."""
    _cordoned(asked, sent.name, cordon=True)


@answers("UncordonQueue", "api.QueueService")
def uncordon_queue(asked: Rpc, sent: submit.QueueUncordonRequest) -> None:
    """Have a queue start jobs again."""
    _cordoned(asked, sent.name, cordon=False)


def _cordoned(asked: Rpc, name: str, *, cordon: bool) -> None:
    if not name:
        verb = "cordon" if cordon else "uncordon"
        refuse(f"cannot {verb} queue with empty name")
    try:
        Queues(asked.backend.store).edit(
            asked.caller, name, lambda queue: evolve(queue or Queue(name), paused=cordon), create=False
        )
    except NotFound as error:
        raise ArmadaRefusal(grpc.StatusCode.NOT_FOUND, f'could not find queue "{name}"') from error


def _found(asked: Rpc, name: str) -> Queue | None:
    try:
        return Queues(asked.backend.store).get(asked.caller, name)
    except NotFound:
        return None


def _message(queue: Queue) -> submit.Queue:
    found = submit.Queue()
    written: dict[str, Any] = armada.queue_of(queue)
    fill(found, written)
    return found
