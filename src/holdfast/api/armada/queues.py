"""Queues: create, update, cordon, read and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.armada._generated import submit
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.mapping import fill, plain
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.domain.job import Queue
from holdfast.domain.record import evolve
from holdfast.errors import Forbidden, HoldfastError, InvalidManifest, NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.catalogue import Policies, Queues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.api.connect.calls import Rpc

_BOTH = ("api.QueueService", "api.Submit")


@CALLS.answers("CreateQueue", *_BOTH)
def create_queue(call: Rpc, queue: submit.Queue) -> None:
    """Create a queue or replace it, as upstream does; a new one without an owner belongs to the caller."""
    owned = submit.Queue(user_owners=[call.caller.principal.name])
    owned.MergeFrom(queue)
    new = queue if queue.user_owners else owned
    _put(call, queue, new, invalid_as="error validating queue: {}", else_as="error creating queue: {}")


@CALLS.answers("UpdateQueue", *_BOTH)
def update_queue(call: Rpc, queue: submit.Queue) -> None:
    """Replace a queue or create it, as upstream does; policies and owners that are left out are removed."""
    _put(call, queue, queue, invalid_as="error: {}", else_as="error updating queue: {}", read=armada.updated_queue)


def _put(
    call: Rpc,
    queue: submit.Queue,
    new: submit.Queue,
    *,
    invalid_as: str,
    else_as: str,
    read: Callable[[dict[str, Any], Queue | None], Queue] = armada.read_queue,
) -> None:
    """Store ``queue`` if one of its name exists, or else ``new``."""
    names = {policy.name for policy in Policies(call.backend.store).list(call.caller)}
    unknown = [name for name in queue.retry_policies if name not in names]
    try:
        armada.read_queue(plain(queue), None)
        if unknown:
            quoted = ", ".join(f'"{name}"' for name in unknown)
            refuse(else_as.format(f"retry policies do not exist: {quoted}"))
        Queues(call.backend.store).edit(
            call.caller, queue.name, lambda before: read(plain(queue if before else new), before)
        )
    except InvalidManifest as error:
        refuse(invalid_as.format(error.problems[0].message), error.problems)
    except HoldfastError as error:
        message = error.problems[0].message if error.problems else error.message
        raise Rejected.of(error, else_as.format(message)) from error


@CALLS.answers("CreateQueues", *_BOTH)
def create_queues(call: Rpc, queue_list: submit.QueueList) -> submit.BatchQueueCreateResponse:
    """Create many queues, and list those that could not be created."""
    answer = submit.BatchQueueCreateResponse()
    for queue, error in _put_each(call, queue_list, create_queue):
        answer.failed_queues.add(queue=queue, error=error)
    return answer


@CALLS.answers("UpdateQueues", *_BOTH)
def update_queues(call: Rpc, queue_list: submit.QueueList) -> submit.BatchQueueUpdateResponse:
    """Replace many queues, and list those that could not be replaced."""
    answer = submit.BatchQueueUpdateResponse()
    for queue, error in _put_each(call, queue_list, update_queue):
        answer.failed_queues.add(queue=queue, error=error)
    return answer


def _put_each(
    call: Rpc, queue_list: submit.QueueList, put: Callable[[Rpc, submit.Queue], None]
) -> Iterator[tuple[submit.Queue, str]]:
    for queue in queue_list.queues:
        try:
            put(call, queue)
        except Rejected as error:
            yield queue, go_status(error)


def go_status(error: Rejected) -> str:
    """Return a refusal as Go prints a status, which upstream answers for each part of a batch."""
    name = "".join(part.capitalize() for part in error.code.name.split("_"))
    return f"rpc error: code = {name} desc = {error.message}"


@CALLS.answers("DeleteQueue", *_BOTH)
def delete_queue(call: Rpc, request: submit.QueueDeleteRequest) -> None:
    """Delete a queue; a missing one counts as deleted, as upstream has it."""
    try:
        Queues(call.backend.store).delete(call.caller, request.name)
    except NotFound:
        return
    except Forbidden as error:
        raise Rejected.of(error, f"error deleting queue {request.name}: {error.message}") from error
    except HoldfastError as error:
        refuse(f"error deleting queue {request.name}: {error.message}", error.problems)


@CALLS.answers("GetQueue", *_BOTH)
def get_queue(call: Rpc, request: submit.QueueGetRequest) -> submit.Queue:
    """Read a queue."""
    queue = _find(call, request.name)
    if queue is None:
        raise Rejected(Code.NOT_FOUND, f'error: could not find queue "{request.name}"')
    return _message(queue)


@CALLS.answers("GetQueues", *_BOTH)
def get_queues(call: Rpc, request: submit.StreamingQueueGetRequest) -> Iterator[submit.StreamingQueueMessage]:
    """Read all queues, or the first ``num``, by name; a marker ends them."""
    queues = Queues(call.backend.store).list(call.caller)
    for queue in queues[: request.num or None]:
        yield submit.StreamingQueueMessage(queue=_message(queue))
    yield submit.StreamingQueueMessage(end=submit.EndMarker())


@CALLS.answers("CordonQueue", "api.QueueService")
def cordon_queue(call: Rpc, request: submit.QueueCordonRequest) -> None:
    """Pause a queue; its policies and permissions stay."""
    _cordon(call, request.name, cordon=True)


@CALLS.answers("UncordonQueue", "api.QueueService")
def uncordon_queue(call: Rpc, request: submit.QueueUncordonRequest) -> None:
    """Resume a queue."""
    _cordon(call, request.name, cordon=False)


def _cordon(call: Rpc, name: str, *, cordon: bool) -> None:
    if not name:
        verb = "cordon" if cordon else "uncordon"
        refuse(f"cannot {verb} queue with empty name")
    try:
        Queues(call.backend.store).edit(
            call.caller, name, lambda queue: evolve(queue or Queue(name), paused=cordon), create=False
        )
    except NotFound as error:
        raise Rejected(Code.NOT_FOUND, f'could not find queue "{name}"') from error


def _find(call: Rpc, name: str) -> Queue | None:
    try:
        return Queues(call.backend.store).get(call.caller, name)
    except NotFound:
        return None


def _message(queue: Queue) -> submit.Queue:
    message = submit.Queue()
    written: dict[str, Any] = armada.queue_of(queue)
    fill(message, written)
    return message
