"""Checks a submission against the catalogue, its queue's limits and permissions, and the limits of a request."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.audit import Subject
from holdfast.domain.job import Ceiling
from holdfast.domain.rights import Thing, hands_on, submission_refusal
from holdfast.domain.units import format_amount, format_cpu, format_memory
from holdfast.errors import Forbidden, HoldfastError, InvalidManifest, InvalidRequest, Problem, Refused
from holdfast.service.admission.offers import unknown_resources
from holdfast.service.naming import unknown_names, unknown_notifiers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Node, Queue, Resources
    from holdfast.domain.terms.kinds import SubjectName
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.catalogue import Catalogue

Gate: TypeAlias = "Callable[[SubjectName, str, str, str], HoldfastError | None]"
"""Returns the refusal of work of a kind in a queue and a group, with a token for what is below another, if any."""
MOST_JOBS = 10_000
"""In one submission."""
LONGEST_KEY = 255
LARGEST_TOTAL_MEMORY = 1 << 60
LARGEST_TOTAL_CPU_M = 1_000_000_000
_UNLIMITED = Ceiling()


def check(
    spec: JobSpec,
    catalogue: Catalogue,
    nodes: Callable[[], Sequence[Node]],
    closed: Gate = lambda *_: None,
    kind: SubjectName = Subject.JOB,
) -> HoldfastError | None:
    """Return the error that keeps a valid specification from being accepted, if any.

    Args:
        spec: The specification.
        catalogue: The queues, policies, notifiers and settings.
        nodes: Lists the nodes.
        closed: Returns the refusal if the caller may not submit to the queue; the controller passes none.
        kind: The kind of the work; for a task, the kind of its array.
    """
    problems = unknown_names((spec.queue,), catalogue.queues, "queue", lambda _: "spec.queue")
    problems += unknown_names(
        spec.retry_policies, catalogue.policies, "retry policy", lambda i: f"spec.retryPolicies[{i}]"
    )
    problems += unknown_notifiers(spec.notify, catalogue.notifiers)
    problems += _too_much(spec)
    problems += unknown_resources(spec, catalogue.settings.resources, nodes)
    if problems:
        return InvalidManifest(f"job {spec.name!r} is not valid", problems=problems)
    if (refused := closed(kind, spec.queue, spec.group, spec.identity)) is not None:
        return refused
    beyond = _beyond_queue(spec, catalogue.queues[spec.queue])
    return Refused(f"queue {spec.queue!r} could never run job {spec.name!r}", problems=beyond) if beyond else None


def gate(caller: Caller | None, queues: Mapping[str, Queue]) -> Gate:
    """Return a gate for a caller, which judges equal items once."""
    if caller is None:
        return lambda *_: None
    principal = caller.principal
    return cache(lambda kind, queue, group, below: closed_to(principal, kind, queues[queue], group, below))


def closed_to(principal: Principal, kind: SubjectName, queue: Queue, group: str, below: str = "") -> Forbidden | None:
    """Return why a principal may not submit work to a queue and a group, if so.

    Args:
        principal: The submitter.
        kind: The kind of the work.
        queue: The queue.
        group: The group; empty for none.
        below: The group that the tokens of its runs are for; empty if they get none.
    """
    refused = submission_refusal(principal, Thing(kind, queue.name, group=group), queue.permissions)
    if refused is None and below and not hands_on(principal, below):
        msg = f"{principal.name} may not submit a job with an identity by this token, whose scope is too small"
        hint = f"use a token for submit,watch,logs,cancel@job:group={below}/, or no token; or leave out identity"
        return Forbidden(msg, hint=hint)
    return None if refused is None else Forbidden(refused.message, hint=refused.hint)


def _too_much(spec: JobSpec) -> list[Problem]:
    """Check that the whole gang requests an amount that could exist."""
    problems = []
    if spec.gang * spec.resources.memory > LARGEST_TOTAL_MEMORY:
        message = f"{spec.gang} ranks of {format_memory(spec.resources.memory)} are more than 1Ei in total"
        problems.append(Problem("spec.resources.memory", message, hint="the amount is for each rank"))
    if spec.gang * spec.resources.cpu_m > LARGEST_TOTAL_CPU_M:
        message = f"{spec.gang} ranks of {format_cpu(spec.resources.cpu_m)} cpu are more than 1000000 in total"
        problems.append(Problem("spec.resources.cpu", message, hint="the amount is for each rank"))
    return problems


def _beyond_queue(spec: JobSpec, queue: Queue) -> list[Problem]:
    """Check that the queue's limits do not keep the job from ever running."""
    if queue.max_running == queue.per_user.max_running == _UNLIMITED:
        return []
    hint, by_amount = "request less, or use another queue", dict[str, Problem]()
    ceilings = {
        f"queue {queue.name!r}": queue.max_running,
        f"each user in queue {queue.name!r}": queue.per_user.max_running,
    }
    for holder, ceiling in ceilings.items():
        for name, amount, limit, shown in _dimensions(spec.resources, ceiling):
            if limit is not None and amount * spec.gang > limit:
                message = f"{spec.gang} x {shown(amount)} is more than the {shown(limit)} that {holder} may use at once"
                by_amount.setdefault(name, Problem(f"spec.resources.{name}", message, hint=hint))
    return [*by_amount.values()]


def _dimensions(request: Resources, limit: Ceiling) -> Iterable[tuple[str, int, int | None, Callable[[int], str]]]:
    yield "cpu", request.cpu_m, limit.cpu_m, format_cpu
    yield "memory", request.memory, limit.memory, format_memory
    yield "gpu", request.gpu * 1000 + request.share_m, None if limit.gpu is None else limit.gpu * 1000, format_amount
    for name, most in limit.named:
        yield name, request.amount_of(name), most, format_amount


def check_count(count: int) -> None:
    """Check that a submission is neither empty nor too large.

    Raises:
        InvalidRequest: It is.
    """
    if count == 0:
        msg = "nothing to submit"
        raise InvalidRequest(msg, problems=[Problem("items", "is empty", hint="send at least one manifest")])
    if count > MOST_JOBS:
        problem = Problem("items", f"has {count} jobs", allowed=(f"1 to {MOST_JOBS}",), hint="submit in parts")
        msg = "the submission has too many jobs"
        raise InvalidRequest(msg, problems=[problem])


def check_key(key: str | None) -> None:
    """Check that an idempotency key can be kept.

    Raises:
        InvalidRequest: It cannot.
    """
    if key is not None and not (key.isprintable() and 0 < len(key) <= LONGEST_KEY):
        problem = Problem("Idempotency-Key", "must be printable text", allowed=(f"1 to {LONGEST_KEY} characters",))
        msg = "the idempotency key is not valid"
        raise InvalidRequest(msg, problems=[problem])
