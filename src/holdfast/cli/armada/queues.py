"""Queues: create, update, delete, get, cordon and uncordon them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.armada.failure import Failed
from holdfast.cli.armada.line import ArmadaCommand, Flag, FlagKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.api.armada._generated.submit import Queue
    from holdfast.cli.armada.invocation import Invocation

SUBMIT, QUEUES = "api.Submit", "api.QueueService"
VERSION, KIND = "armadaproject.io/v1beta1", "Queue"
_SETTINGS = (
    Flag(
        "priority-factor",
        FlagKind.NUMBER,
        "Set queue priority factor: a lower number makes the queue more important; at least 1.",
        default=1.0,
    ),
    Flag("owners", FlagKind.LIST, "Users who own the queue, separated by commas."),
    Flag("group-owners", FlagKind.LIST, "Groups that own the queue, separated by commas."),
    Flag("cordon", FlagKind.FLAG, "Have the queue start no jobs."),
    Flag("labels", FlagKind.LIST, "Labels KEY=VALUE of the queue, separated by commas.", "l"),
    Flag("retry-policies", FlagKind.LIST, "Retry policies of the queue, in their order, separated by commas."),
    Flag("retry-policy", FlagKind.LIST, "The same, as the design document spells it."),
)


def _create(asked: Invocation) -> int:
    name = asked.words[0]
    sent = _queue(asked)
    asked.call(
        SUBMIT,
        "CreateQueue",
        sent,
        f"[armadactl.CreateQueue] error creating queue {name}: create queue request failed: {{}}",
    )
    asked.out(f"Created queue {name}")
    return 0


def _update(asked: Invocation) -> int:
    update(asked, _queue(asked))
    return 0


def update(asked: Invocation, sent: Queue) -> None:
    """Replace a queue."""
    name = sent.name
    otherwise = f"error updating queue {name}: failed to create queue with name {name}. {{}}"
    asked.call(SUBMIT, "UpdateQueue", sent, otherwise)
    asked.out(f"Updated queue {name}")


def _queue(asked: Invocation) -> Queue:
    """Make a queue of the flags."""
    from holdfast.api.armada._generated.submit import Queue

    flags, labels = asked.flags, dict[str, str]()
    for label in flags["labels"]:
        if label.count("=") != 1:
            told = f"error converting queue labels to map: invalid label: {label}"
            raise Failed(told)
        key, _, labels[key] = label.partition("=")
    sent = Queue(
        name=asked.words[0],
        priority_factor=flags["priority-factor"],
        user_owners=flags["owners"],
        group_owners=flags["group-owners"],
        cordoned=flags["cordon"],
        labels=labels,
        retry_policies=[*flags["retry-policies"], *flags["retry-policy"]],
    )
    check(sent, "invalid queue data: {}")
    return sent


def check(sent: Queue, otherwise: str) -> None:
    """Check what can be known without a server.

    Raises:
        Failed: It is not a queue.
    """
    from holdfast.api.armada.plain import plain
    from holdfast.errors import InvalidManifest
    from holdfast.service.manifests.armada import read_queue

    try:
        read_queue(plain(sent), None)
    except InvalidManifest as error:
        first, *others = (one.message for one in error.problems)
        raise Failed(otherwise.format(first), *(f"  {one}" for one in others)) from error


def queue_in(value: Mapping[str, Any], file: str, note: Callable[[str], None]) -> Queue:
    """Read a queue of a file.

    Raises:
        Failed: It is none.
    """
    from holdfast.api.armada._generated.submit import Queue
    from holdfast.api.armada.plain import fill
    from holdfast.cli.armada.files import MessageShape

    shape, sent = MessageShape(), Queue()
    fields = {key: one for key, one in value.items() if str(key).lower() not in {"apiversion", "kind"}}
    fill(sent, shape.of(Queue.DESCRIPTOR, fields))
    if shape.wrong:
        told = f"file {file} error: {shape.wrong[0]}"
        raise Failed(told, *(f"  {one}" for one in shape.wrong[1:]))
    for name in shape.unknown:
        note(f"warning: {file}: {name} is not a field of a queue, and has no effect")
    check(sent, f"file {file} error: {{}}")
    return sent


def create(asked: Invocation, sent: Queue) -> None:
    """Create a queue that a file describes."""
    asked.call(SUBMIT, "CreateQueue", sent, "create queue request failed: {}")
    asked.out(f"Created queue {sent.name}")


def _delete(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import QueueDeleteRequest

    name = asked.words[0]
    otherwise = f"[armadactl.DeleteQueue] error deleting queue {name}: delete queue request failed: {{}}"
    asked.call(SUBMIT, "DeleteQueue", QueueDeleteRequest(name=name), otherwise)
    asked.out(f"Deleted queue {name} (or it did not exist)")
    return 0


def _get(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import QueueGetRequest

    name = asked.words[0]
    otherwise = f"[armadactl.GetQueue] error getting queue {name}: get queue info request failed: {{}}"
    asked.document(_written([asked.call(SUBMIT, "GetQueue", QueueGetRequest(name=name), otherwise)]))
    return 0


def _written(queues: Sequence[Queue]) -> str:
    """Write queues as documents that ``create -f`` takes."""
    from holdfast.api.armada.plain import plain
    from holdfast.dialects.yaml_writing import write_yaml

    found = ({"apiVersion": VERSION, "kind": KIND, **_sorted(plain(one))} for one in queues)
    return "---\n".join(map(write_yaml, found))


def _sorted(value: Mapping[str, Any]) -> dict[str, Any]:
    """Order the fields of a queue, and its labels: what a message maps has no order."""
    return {key: _sorted(one) if isinstance(one, dict) else one for key, one in sorted(value.items())}


def _get_all(asked: Invocation) -> int:
    if asked.words and asked.flags["match-labels"]:
        told = "you can select either with a set of queue names or a set of queue labels, but not both"
        raise Failed(told)
    asked.document(_written(list(select(asked, asked.flags["match-labels"], "error getting all queues: {}"))))
    return 0


def select(asked: Invocation, labels: Sequence[str], otherwise: str) -> Iterator[Queue]:
    """List the queues that are meant: of some names or labels, cordoned ones alone, or all others.

    Raises:
        Failed: They cannot be listed, or a name is none.
    """
    if not all(asked.words):
        told = "provided queue name invalid: cannot provide empty queue name"
        raise Failed(told)
    only_cordoned = asked.flags.get("only-cordoned", False)
    for queue in list_all(asked, otherwise):
        is_meant = not asked.words or queue.name in asked.words
        is_meant = is_meant and all(_has(queue, label) for label in labels)
        is_meant = is_meant and (queue.cordoned or not only_cordoned)
        if is_meant is not asked.flags.get("inverse", False):
            yield queue


def _has(queue: Queue, label: str) -> bool:
    key, equals, value = label.partition("=")
    return key in queue.labels and (not equals or queue.labels[key] == value)


def list_all(asked: Invocation, otherwise: str) -> list[Queue]:
    """List all queues.

    Raises:
        Failed: They cannot be listed.
    """
    import grpc

    from holdfast.api.armada._generated.submit import StreamingQueueGetRequest

    try:
        sent = asked.connection.stream(SUBMIT, "GetQueues", StreamingQueueGetRequest())
        return [one.queue for one in sent if one.HasField("queue")]
    except grpc.RpcError as error:
        failed = asked.connection.failed(error)
        raise Failed(otherwise.format(f"error getting all queues: {failed.message}"), *failed.more) from error


def _cordon(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import QueueCordonRequest

    return _each(asked, "cordon", lambda name: ("CordonQueue", QueueCordonRequest(name=name)))


def _uncordon(asked: Invocation) -> int:
    from holdfast.api.armada._generated.submit import QueueUncordonRequest

    return _each(asked, "uncordon", lambda name: ("UncordonQueue", QueueUncordonRequest(name=name)))


def _each(asked: Invocation, verb: str, request: Callable[[str], tuple[str, Any]]) -> int:
    labels = asked.flags["match-labels"]
    if not asked.words and not labels:
        told = f"either queue names or match-labels must be set to determine queues to {verb}"
        raise Failed(told)
    if asked.words and labels:
        told = f"you can {verb} by either a set of queue names or a set of queue labels, but not both"
        raise Failed(told)
    meant = [one.name for one in select(asked, labels, "error retrieving queues: {}")]
    begin = f"{verb.capitalize()}ing the following queues:"
    if asked.flags["dry-run"]:
        asked.out(f"{begin} (DRY RUN)")
        for name in meant:
            asked.out(name)
        return 0
    asked.out(begin)
    for name in meant:
        method, sent = request(name)
        asked.call(QUEUES, method, sent, f"Could not {verb} queue {name}: error updating queue {name}: {{}}")
        asked.out(f"{name} {verb}ed")
    return 0


_INVERSE = Flag("inverse", FlagKind.FLAG, "Take the queues that are not meant instead.")
_BY_LABEL = (
    Flag("match-labels", FlagKind.LIST, "Labels KEY=VALUE or KEY that the queues have, separated by commas.", "l"),
    _INVERSE,
    Flag("dry-run", FlagKind.FLAG, "Show which queues are meant, and change nothing."),
)
_NAME, _NAMES = "<queue-name>", "<queue_1> <queue_2> <queue_3> ..."
CREATE = ArmadaCommand("queue", "Create a queue, or replace the one of its name", _create, _NAME, 1, _SETTINGS)
UPDATE = ArmadaCommand("queue", "Replace a queue: what is left out is as in a new one", _update, _NAME, 1, _SETTINGS)
DELETE = ArmadaCommand("queue", "Delete a queue, which must be empty", _delete, _NAME, 1)
GET = ArmadaCommand("queue", "Show a queue, as create -f takes it", _get, _NAME, 1)
GET_ALL = ArmadaCommand(
    "queues",
    "Show queues, of some names or labels",
    _get_all,
    _NAMES,
    None,
    (
        Flag("match-labels", FlagKind.LIST, "Labels KEY=VALUE or KEY that the queues have, separated by commas.", "l"),
        _INVERSE,
        Flag("only-cordoned", FlagKind.FLAG, "Show cordoned queues alone."),
    ),
)
CORDON = ArmadaCommand("queues", "Have queues start no more jobs", _cordon, _NAMES, None, _BY_LABEL, aliases=("queue",))
UNCORDON = ArmadaCommand(
    "queues", "Have queues start jobs again", _uncordon, _NAMES, None, _BY_LABEL, aliases=("queue",)
)
