"""What the catalogue and the work that names its entries owe each other: what is named is there, what is used stays."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from holdfast.compiled.workloads import needs_of
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import DEFAULT_QUEUE
from holdfast.errors import Conflict, InvalidRequest, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.domain.job import Queue
    from holdfast.domain.workloads.base import Owner

_SHOWN = 3


def require_policies(queue: Queue, existing: Collection[str]) -> None:
    """Check that every policy a queue names exists.

    Raises:
        InvalidRequest: One does not.
    """
    problems = [
        Problem(f"retryPolicies[{index}]", f"retry policy {name!r} does not exist", tuple(sorted(existing)))
        for index, name in enumerate(queue.retry_policies)
        if name not in existing
    ]
    if problems:
        message = f"queue {queue.name!r} names a retry policy that does not exist"
        raise InvalidRequest(message, problems=problems, hint="create the policy first")


def require_notifiers(queue: Queue, existing: Collection[str]) -> None:
    """Check that every notifier a queue names exists.

    Raises:
        InvalidRequest: One does not.
    """
    problems = [
        Problem(f"notify[{index}].to", f"notifier {wish.to!r} does not exist", tuple(sorted(existing)))
        for index, wish in enumerate(queue.notify)
        if wish.to not in existing
    ]
    if problems:
        message = f"queue {queue.name!r} names a notifier that does not exist"
        raise InvalidRequest(message, problems=problems, hint="create the notifier first")


def require_unused_notifier(name: str, *, queues: Iterable[Queue]) -> None:
    """Check that no queue names a notifier that is to be deleted.

    Raises:
        Conflict: One does.
    """
    users = [f"queue {queue.name!r}" for queue in queues if any(wish.to == name for wish in queue.notify)]
    if users:
        message = f"notifier {name!r} is used by {', '.join(users)}"
        raise Conflict(message, hint="take it out there first")


def require_default_policy(name: str | None, existing: Collection[str]) -> None:
    """Check that the settings' default policy exists.

    Raises:
        InvalidRequest: It does not.
    """
    if name is not None and name not in existing:
        problem = Problem("defaultPolicyName", f"retry policy {name!r} does not exist", tuple(sorted(existing)))
        message = "the default retry policy does not exist"
        raise InvalidRequest(message, problems=[problem], hint="create the policy first")


def detached(policy: str, queues: Iterable[Queue]) -> list[Queue]:
    """Return the queues that name a policy, without it."""
    return [
        evolve(queue, retry_policies=tuple(name for name in queue.retry_policies if name != policy))
        for queue in queues
        if policy in queue.retry_policies
    ]


def require_unused_policy(
    name: str, *, queues: Iterable[Queue], default_policy: str | None, work: Iterable[str]
) -> None:
    """Check that nothing names a policy that is to be deleted.

    Args:
        name: The policy.
        queues: Those that may name it.
        default_policy: What the settings name.
        work: What has not ended and names it; only the first are read, and shown.

    Raises:
        Conflict: A queue does, the settings do, or work that has not ended.
    """
    users = [f"queue {queue.name!r}" for queue in queues if name in queue.retry_policies]
    if name == default_policy:
        users.append("the settings, as default policy")
    hints = ["take it out there first"] if users else []
    if some := [*islice(work, _SHOWN + 1)]:
        users += [*some[:_SHOWN], *(["others"] if len(some) > _SHOWN else [])]
        hints.append("wait for what has not ended, or cancel it; until then it can be changed: holdfast apply")
    if users:
        message = f"retry policy {name!r} is used by {', '.join(users)}"
        raise Conflict(message, hint="; ".join(hints))


def names_policy(workload: Owner, policy: str) -> bool:
    """Whether a workload that goes on names a policy for jobs that it has made, or will make."""
    return not workload.ended and policy in needs_of(workload).policies


def user(noun: str, name: str, key: str) -> str:
    """Say what uses something."""
    return f"{noun} {name!r} ({key})"


def gone_policy(name: str) -> Conflict:
    """Say that a policy that work was to name is there no more."""
    return Conflict(f"retry policy {name!r} does not exist any more", hint="create it again, or name another one")


def require_not_default_queue(name: str) -> None:
    """Check that a queue to be deleted is not the default one.

    Raises:
        Conflict: It is.
    """
    if name == DEFAULT_QUEUE:
        message = f"queue {name!r} is where jobs without a queue go; it cannot be deleted"
        raise Conflict(message)


def waiting_jobs(name: str) -> Conflict:
    """Say that a queue still has jobs."""
    return Conflict(f"queue {name!r} still has jobs that have not ended", hint="cancel them, or wait for them")


def require_no_owners(name: str, owners: Iterable[Owner]) -> None:
    """Check that nothing that goes on makes jobs for a queue that is to be deleted.

    Raises:
        Conflict: Something does.
    """
    for owner in owners:
        if not owner.ended and needs_of(owner).queue == name:
            message = f"queue {name!r} still has {owner.noun} {owner.name!r}, which has not ended"
            raise Conflict(message, hint=f"cancel it, or wait for it: holdfast wait {owner.kind} {owner.name}")


def gone_queue(name: str) -> Conflict:
    """Say that a queue in which work was to wait is there no more."""
    return Conflict(f"queue {name!r} does not exist any more", hint="create it again, or name another queue")
