"""What can be listed, fetched, written and deleted, kind by kind: the client's calls and the tables' columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.cli.nouns import OF_ENTRIES, OWNERS, SINGULAR, Noun
from holdfast.cli.printing import fields_of
from holdfast.cli.render import arrays, catalogue, events, jobs, jobsets
from holdfast.cli.render.custom_columns import EVERY, is_custom, read_columns
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from holdfast.cli.nouns import NounName
    from holdfast.cli.render.words import Table
    from holdfast.client import Client
    from holdfast.domain.terms.entries import EntryInfo
    from holdfast.domain.terms.kinds import KindInfo
    from holdfast.wire.problems import UnreadableView

MOST_IDS = 200
"""Jobs that one request may name."""
_SHORT = {"table", "name"}
"""Formats that show little of each job."""


@dataclass(frozen=True, slots=True)
class ResourceReader:
    """How one kind of thing is read and shown."""

    listed: Callable[[Client], Iterable[Any]]
    fetched: Callable[[Client, str], Any]


def _node(client: Client, name: str) -> object:
    nodes = [node for node in client.nodes() if node.name == name]
    if not nodes:
        msg = f"Node {name!r} does not exist."
        raise NotFound(msg, hint="holdfast get nodes")
    return nodes[0]


def _device(client: Client, name: str) -> object:
    devices = [device for device in client.devices() if device.id == name]
    if not devices:
        msg = f"Device {name!r} does not exist."
        raise NotFound(msg, hint="holdfast get devices")
    return devices[0]


def _audit_entry(client: Client, entry_id: str) -> object:
    entries = [entry for entry in client.audit() if entry.id == entry_id]
    if not entries:
        msg = f"The audit log has no entry {entry_id!r}."
        raise NotFound(msg, hint="holdfast get audit")
    return entries[0]


def _reader(kind: KindInfo) -> ResourceReader:
    return ResourceReader(lambda client: client.of(kind).list(), lambda client, name: client.of(kind).get(name))


def _entry_reader(info: EntryInfo) -> ResourceReader:
    return ResourceReader(
        lambda client: client.entries(info).list(), lambda client, name: client.entries(info).get(name)
    )


READERS: dict[NounName, ResourceReader] = {
    **{noun: _reader(kind) for noun, kind in OWNERS.items()},
    Noun.JOB: ResourceReader(lambda client: client.jobs(), lambda client, name: client.job(name)),
    Noun.JOB_SET: ResourceReader(lambda client: client.job_sets(), lambda client, name: client.job_set(name)),
    Noun.ARRAY: ResourceReader(lambda client: client.arrays(), lambda client, name: client.array(name)),
    **{noun: _entry_reader(info) for noun, info in OF_ENTRIES.items()},
    Noun.NODE: ResourceReader(lambda client: client.nodes(), _node),
    Noun.DEVICE: ResourceReader(lambda client: client.devices(), _device),
    Noun.AUDIT: ResourceReader(lambda client: client.audit(), _audit_entry),
}


def table_of(noun: NounName, *, now_s: float, wide: bool = False) -> Callable[[Sequence[Any]], Table]:
    """Return the function that tabulates things of a kind.

    Args:
        noun: The kind.
        now_s: The present, for ages, in seconds since the epoch, UTC.
        wide: Whether to add the columns of ``-o wide``.
    """
    tables: dict[NounName, Callable[[Sequence[Any]], Table]] = {
        Noun.JOB: partial(jobs.job_table, now_s=now_s, wide=wide),
        Noun.JOB_SET: partial(jobsets.jobset_table, now_s=now_s, wide=wide),
        Noun.ARRAY: partial(arrays.array_table, now_s=now_s, wide=wide),
        Noun.QUEUE: catalogue.queue_table,
        Noun.RETRY_POLICY: catalogue.policy_table,
        Noun.CATEGORY: catalogue.category_table,
        Noun.NOTIFIER: catalogue.notifier_table,
        Noun.NODE: catalogue.wide_node_table if wide else partial(catalogue.node_table, now_s=now_s),
        Noun.DEVICE: partial(catalogue.device_table, wide=wide),
        Noun.SETTINGS: lambda things: catalogue.settings_table(things[0]),
        Noun.AUDIT: events.wide_audit_table if wide else partial(events.audit_table, now_s=now_s),
    }
    if noun in OF_ENTRIES:
        return tables.get(noun, catalogue.entry_table)
    return tables.get(noun) or partial(jobs.workload_table, now_s=now_s, wide=wide)


def model_of(noun: NounName, *, single: bool = False) -> type[Any]:
    """Return the model of a kind's things: in a list, or ``single`` by name."""
    from holdfast.wire import arrays as array_models
    from holdfast.wire import catalogue as models
    from holdfast.wire.entries import models_of
    from holdfast.wire.events import AuditView
    from holdfast.wire.jobs import JobOutcome, JobView
    from holdfast.wire.jobsets import JobSetSummary, JobSetView
    from holdfast.wire.workloads import WorkloadView

    return {
        Noun.JOB: JobView if single else JobOutcome,
        Noun.JOB_SET: JobSetView if single else JobSetSummary,
        Noun.ARRAY: array_models.ArrayView,
        **{its_noun: models_of(info).view for its_noun, info in OF_ENTRIES.items()},
        Noun.NODE: models.NodeView,
        Noun.DEVICE: models.DeviceView,
        Noun.SETTINGS: models.SettingsView,
        Noun.AUDIT: AuditView,
    }.get(noun, WorkloadView)


@dataclass(frozen=True, slots=True)
class Selection:
    """The things to show, and the output format, which decides how much is requested of each."""

    noun: NounName
    names: Sequence[str] = ()
    """Only these, if any are given."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Filters of the client's calls."""
    limit: int | None = None
    form: str = "table"

    @property
    def single(self) -> bool:
        """Whether it selects a single thing by name."""
        return len(self.names) == 1 or self.noun == Noun.SETTINGS

    @property
    def model(self) -> type[Any]:
        """The model of the things."""
        return model_of(self.noun, single=self._whole)

    @property
    def _whole(self) -> bool:
        """Whether each thing is requested in full."""
        if self.noun == Noun.JOB and self.form in {"csv", "wide"}:
            return False
        if self.names or not is_custom(self.form):
            return bool(self.names)
        short = {*fields_of(model_of(self.noun)), EVERY}
        return any(path[0] not in short for _, path in read_columns(self.form))

    def read(self, client: Client, say: Callable[[str], object] = lambda _: None) -> list[Any]:
        """Fetch the things; ``say`` gets a line for each damaged one that the list leaves out."""
        if self.noun == Noun.SETTINGS:
            return [client.settings()]
        if self.names:
            things = [READERS[self.noun].fetched(client, name) for name in self.names]
            return things if self._whole or self.noun != Noun.JOB else _outcomes(client, [job.id for job in things])
        return self._listed(client, partial(tell_unreadable, say, SINGULAR[self.noun]))

    def of_ids(self, client: Client, ids: Sequence[str]) -> list[Any]:
        """Fetch the jobs of the list that have these ids, at most ``MOST_IDS``."""
        listing = client.full_jobs if self._whole else client.jobs if self.form in _SHORT else client.job_outcomes
        return list(listing(**{**self.where, "ids": ids}))

    def _listed(self, client: Client, unreadable: Callable[[UnreadableView], None]) -> list[Any]:
        if self.noun == Noun.JOB_SET:
            sets = client.job_sets(**self.where, limit=self.limit, unreadable=unreadable)
            return [client.job_set(job_set.id) for job_set in sets] if self._whole else list(sets)
        if self.noun in OWNERS:
            listing = client.arrays if self.noun == Noun.ARRAY else client.of(OWNERS[self.noun]).list
            return list(listing(**self.where, limit=self.limit, unreadable=unreadable))
        if self.noun != Noun.JOB:
            return list(READERS[self.noun].listed(client))[: self.limit]
        if self.form in _SHORT:
            return list(client.jobs(**self.where, limit=self.limit))
        return list((client.full_jobs if self._whole else client.job_outcomes)(**self.where, limit=self.limit))


def tell_unreadable(say: Callable[[str], object], noun: str, item: UnreadableView) -> None:
    """Report a damaged thing that a list leaves out, and how to delete it."""
    why = item.message.partition("\n")[0]
    advice = f"to delete it: holdfast delete {noun} {item.name}"
    say(f"{noun} {item.name} ({item.id}) is damaged and not in the list: {why}; {advice}")


def _outcomes(client: Client, ids: Sequence[str]) -> list[Any]:
    """Fetch jobs as lists show them, in the order of ``ids``."""
    by_id = {job.id: job for some in batched(ids) for job in client.job_outcomes(ids=some)}
    return [by_id[job_id] for job_id in ids if job_id in by_id]


def batched(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split ids into batches that one request may name."""
    for start in range(0, len(ids), MOST_IDS):
        yield ids[start : start + MOST_IDS]


def name_of(noun: NounName, thing: Any) -> str:  # noqa: ANN401 - a thing of any kind
    """Name a thing so that other commands understand it: a job by its id, because several may share a name."""
    if noun == Noun.SETTINGS:
        return str(noun)
    named = thing.id if noun in {Noun.JOB, Noun.DEVICE, Noun.AUDIT} else thing.name
    return f"{SINGULAR[noun]}/{named}"


class Put(Protocol):
    """Creates or replaces a thing by name."""

    def __call__(self, name: str, manifest: Mapping[str, Any], *, must_exist: bool = False) -> object:
        """Send the manifest."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceWriter:
    """How one kind of thing is written."""

    create: Callable[[Mapping[str, Any]], Any]
    put: Put
    delete: Callable[[str], object]


def resource_writer(client: Client, noun: NounName, *, lenient: bool = False) -> ResourceWriter:
    """Return the calls that write things of a kind; ``lenient`` applies to job sets."""
    if noun == Noun.JOB_SET:
        create, put = partial(client.create_job_set, lenient=lenient), partial(client.put_job_set, lenient=lenient)
        return ResourceWriter(create, put, client.delete_job_set)
    if noun in OWNERS:
        kind = client.of(OWNERS[noun])
        return ResourceWriter(kind.create, kind.put, kind.delete)
    entries = client.entries(OF_ENTRIES[noun])
    return ResourceWriter(entries.create, entries.put, entries.delete)


WRITTEN = (
    *OF_ENTRIES,
    *(noun for noun, kind in OWNERS.items() if kind.manifest),
)
"""Kinds that are written under a name, in the order ``apply`` writes them: policies name categories, queues
name policies and notifiers, work names queues."""
