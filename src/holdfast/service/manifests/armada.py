"""Reads jobs, queues, retry policies and configuration in Armada's formats."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.dialects.armada import configuration, queues
from holdfast.dialects.armada.items import PRIORITY_CLASSES, pod_of
from holdfast.dialects.armada.jobs import EXTERNAL_URI, POD_NAMES, priority_of, read_items, request_problems
from holdfast.dialects.armada.messages import read_policy_message, sentence
from holdfast.dialects.armada.messages import write_policy_message as policy_of
from holdfast.dialects.armada.permissions import GROUP_OWNERS, NOBODY, PERMISSIONS, USER_OWNERS
from holdfast.dialects.armada.templates import names_job_id, with_job_id
from holdfast.dialects.documents import read_documents
from holdfast.domain.record import evolve
from holdfast.errors import InvalidManifest, InvalidPolicy, InvalidSetting, Problem, UnreadableSpec
from holdfast.service.submit import WrittenJob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.dialects.jobset.wording import Engines
    from holdfast.domain.file_settings import FileSettings
    from holdfast.domain.job import Job, Queue
    from holdfast.domain.policy.model import RetryPolicy

__all__ = [
    "EXTERNAL_URI",
    "POD_NAMES",
    "pod_of",
    "policy_of",
    "priority_class_of",
    "priority_of",
    "queue_of",
    "read_configuration",
    "read_policy",
    "read_queue",
    "updated_queue",
    "written_jobs",
    "written_of",
]
_CLAIM = "armada/{queue}/{client_id}"


def written_jobs(
    queue: str, job_set: str, items: Sequence[Mapping[str, Any]], *, sizes: Sequence[int], engines: Engines
) -> list[WrittenJob]:
    """Read the items of a submission, each with its error; see ``read_items``.

    Raises:
        InvalidManifest: It has no queue or no job set.
    """
    problems = request_problems(queue, job_set)
    if problems:
        raise InvalidManifest(problems=problems)
    jobs_written = []
    for item in read_items(queue, job_set, items, sizes=sizes, engines=engines):
        error = InvalidManifest(problems=item.problems) if item.problems else None
        named = partial(with_job_id, item.spec) if names_job_id(item.spec) else None
        claim = _CLAIM.format(queue=queue, client_id=item.client_id) if item.client_id else None
        jobs_written.append(WrittenJob(item.spec, error, flat=True, warnings=item.warnings, claim=claim, named=named))
    return jobs_written


def read_queue(value: Mapping[str, Any], before: Queue | None) -> Queue:
    """Read a queue; settings that Armada does not have are taken from ``before``.

    Raises:
        InvalidManifest: It is not valid; with every problem found.
    """
    problems: list[Problem] = []
    queue = queues.read_queue(value, before=before, problems=problems)
    if queue is None:
        raise InvalidManifest(problems=problems)
    return queue


def updated_queue(value: Mapping[str, Any], before: Queue | None) -> Queue:
    """Read a queue that is new or replaces another; without owners and permissions it is closed to all users.

    A queue that had no permissions, and so is open to every user, stays open: clients send back what they read.

    Raises:
        InvalidManifest: It is not valid; with every problem found.
    """
    queue = read_queue(value, before)
    is_silent = not any(value.get(name) for name in (USER_OWNERS, GROUP_OWNERS, PERMISSIONS))
    closes = is_silent and (before is None or before.permissions)
    return evolve(queue, permissions=NOBODY) if closes else queue


def queue_of(queue: Queue) -> dict[str, Any]:
    """Return a queue in Armada's format."""
    return queues.write_queue(queue)


def written_of(stored: str) -> Mapping[str, Any]:
    """Return the item of a stored job as it was sent to Armada's door; empty if it came in another way."""
    try:
        pod = load_spec(stored).pod
    except UnreadableSpec:
        return {}
    return {} if pod is None else pod.written


def priority_class_of(job: Job) -> str:
    """Return a job's priority class, or the default."""
    pod = pod_of(written_of(job.spec)) or {}
    return str(pod.get("priorityClassName") or PRIORITY_CLASSES[0])


def read_policy(value: Mapping[str, Any]) -> RetryPolicy:
    """Read a retry policy in the API's format.

    Raises:
        InvalidPolicy: It is not valid; with every problem found, and the first of them as upstream says it.
    """
    problems: list[Problem] = []
    policy = read_policy_message(value, problems)
    if policy is None:
        raise InvalidPolicy(sentence(str(value.get("name") or ""), problems[0]), problems=problems)
    return policy


def read_configuration(text: str, file: str) -> FileSettings:
    """Read a configuration file.

    Raises:
        InvalidSetting: It is not valid; with every problem found.
    """
    msg, problems = f"{file} is not a valid configuration", list[Problem]()
    try:
        documents = read_documents(text, name=file)
    except InvalidManifest as error:
        raise InvalidSetting(msg, problems=error.problems or [Problem("", error.message)]) from error
    if len(documents) != 1:
        raise InvalidSetting(msg, problems=[Problem("", f"has {len(documents)} documents, not one")])
    configured = configuration.read_configuration(documents[0].value, file=file, problems=problems)
    if configured is None:
        lines = (evolve(problem, line=documents[0].line_of(problem.path)) for problem in problems)
        raise InvalidSetting(msg, problems=list(lines))
    return configured
