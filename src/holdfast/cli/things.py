"""What can be listed, fetched, written and deleted, kind by kind: the client's calls and the tables' columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli.nouns import Noun
from holdfast.cli.render import catalogue, events, jobs, jobsets
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.cli.render.words import Table
    from holdfast.client import Client


@dataclass(frozen=True, slots=True)
class ResourceReader:
    """How one kind of thing is read and shown."""

    listed: Callable[[Client], Iterable[Any]]
    fetched: Callable[[Client, str], Any]
    table: Callable[[Sequence[Any]], Table]


def _node(client: Client, name: str) -> object:
    found = [node for node in client.nodes() if node.name == name]
    if not found:
        msg = f"Node {name!r} does not exist."
        raise NotFound(msg, hint="holdfast get nodes")
    return found[0]


def _audit_entry(client: Client, entry_id: str) -> object:
    found = [entry for entry in client.audit() if entry.id == entry_id]
    if not found:
        msg = f"The audit log has no entry {entry_id!r}."
        raise NotFound(msg, hint="holdfast get audit")
    return found[0]


READERS: dict[Noun, ResourceReader] = {
    Noun.JOB: ResourceReader(
        lambda client: client.jobs(), lambda client, name: client.job(name), partial(jobs.job_table, now_s=0.0)
    ),
    Noun.JOB_SET: ResourceReader(
        lambda client: client.job_sets(),
        lambda client, name: client.job_set(name),
        partial(jobsets.jobset_table, now_s=0.0),
    ),
    Noun.QUEUE: ResourceReader(
        lambda client: client.queues(), lambda client, name: client.queue(name), catalogue.queue_table
    ),
    Noun.RETRY_POLICY: ResourceReader(
        lambda client: client.policies(),
        lambda client, name: client.policy(name),
        catalogue.policy_table,
    ),
    Noun.CATEGORY: ResourceReader(
        lambda client: client.categories(),
        lambda client, name: client.category(name),
        catalogue.category_table,
    ),
    Noun.NODE: ResourceReader(lambda client: client.nodes(), _node, catalogue.node_table),
    Noun.AUDIT: ResourceReader(lambda client: client.audit(), _audit_entry, events.audit_table),
}


def table_of(noun: Noun, *, now_s: float, wide: bool = False) -> Callable[[Sequence[Any]], Table]:
    """Return how a list of a kind is tabulated.

    Args:
        noun: The kind.
        now_s: Seconds since the epoch, UTC; ages and what runs are counted to it.
        wide: Whether to show more columns, where there are more.
    """
    if noun is Noun.JOB:
        return partial(jobs.job_table, now_s=now_s, wide=wide)
    if noun is Noun.JOB_SET:
        return partial(jobsets.jobset_table, now_s=now_s, wide=wide)
    return READERS[noun].table


class Put(Protocol):
    """Creates or replaces a thing by name."""

    def __call__(self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False) -> object:
        """Send the manifest."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceWriter:
    """How one kind of thing is written."""

    kind: str
    """Its kind in manifests."""
    create: Callable[[Mapping[str, Any]], object]
    put: Put
    delete: Callable[[str], object]


def resource_writer(client: Client, noun: Noun, *, lenient: bool = False) -> ResourceWriter:
    """Return how things of a kind are written; ``lenient`` is how job sets are read."""
    if noun is Noun.JOB_SET:
        create, put = partial(client.create_job_set, lenient=lenient), partial(client.put_job_set, lenient=lenient)
        return ResourceWriter("JobSet", create, put, client.delete_job_set)
    return {
        Noun.QUEUE: ResourceWriter("Queue", client.create_queue, client.put_queue, client.delete_queue),
        Noun.RETRY_POLICY: ResourceWriter("RetryPolicy", client.create_policy, client.put_policy, client.delete_policy),
        Noun.CATEGORY: ResourceWriter(
            "FailureCategory", client.create_category, client.put_category, client.delete_category
        ),
    }[noun]


WRITTEN = (Noun.RETRY_POLICY, Noun.QUEUE, Noun.CATEGORY, Noun.JOB_SET)
"""Kinds that are written under a name, in the order ``apply`` writes them: queues name policies, sets name queues."""
SINGULAR = {
    Noun.JOB: "job",
    Noun.JOB_SET: "jobset",
    Noun.QUEUE: "queue",
    Noun.RETRY_POLICY: "retrypolicy",
    Noun.CATEGORY: "category",
    Noun.NODE: "node",
    Noun.AUDIT: "audit",
}
