"""Dry runs: checks manifests of any kinds together, each as if those before it had been written, and writes none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from holdfast.dialects.documents import Document
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.entries import ENTRIES
from holdfast.domain.terms.kinds import JOB_SET, KINDS
from holdfast.domain.workloads.jobset.model import JobSetSpec, clash, job_name
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, HoldfastError, NotFound, Problem
from holdfast.service.access.asking import asks
from holdfast.service.admission.dependencies import DependencyResolver, SubmissionItem
from holdfast.service.admission.many import problems_of
from holdfast.service.arrays import array_named
from holdfast.service.jobsets.sets import SetWriter, cannot_wait, name_of
from holdfast.service.manifests.reading import entry_manifest, job_item
from holdfast.service.naming import engines_of
from holdfast.service.operations.catalogue import operations_of
from holdfast.service.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.terms.entries import EntryInfo
    from holdfast.domain.terms.kinds import KindInfo
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.entries import Entry
    from holdfast.ports.store import Store
    from holdfast.service.operations.backend import Backend
    from holdfast.service.submit import WrittenJob

Item: TypeAlias = "Document | Mapping[str, Any]"
Check: TypeAlias = "Callable[[_Trial, int, Item], Checked]"
"""Checks the manifest at an index."""


class Verb(StrEnum):
    """How manifests would be written."""

    APPLY = auto()
    CREATE = auto()
    """All must be new."""
    UPDATE = auto()
    """All must exist."""


class Checked(Struct, frozen=True):
    """A manifest that would be accepted."""

    name: str | None
    warnings: tuple[Problem, ...] = ()


class _Pretended:
    """A store whose catalogue includes the entries checked so far."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._catalogue = store.catalogue()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def catalogue(self) -> Catalogue:
        return self._catalogue

    def pretend(self, entry: Entry) -> None:
        self._catalogue = self._catalogue.including(entry)


@dataclass(frozen=True, slots=True)
class _Trial:
    """The state of one dry run."""

    backend: Backend
    pretended: _Pretended
    """The store of ``backend``."""
    caller: Caller
    create: bool | None
    """True: all must be new, false: all must exist."""
    lenient: bool
    owners: dict[int, SubmissionItem] = field(default_factory=dict)
    """Work that consists of jobs by its index, also if it is refused: other work may wait for it."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Job sets by the names of the first jobs of their replicated jobs."""

    def take_jobs(self, spec: JobSetSpec) -> None:
        """Check that no other job set checked before has jobs of the same names.

        Raises:
            Conflict: One has.
        """
        for name in (job_name(spec.name, group.name, 0) for group in spec.replicated_jobs if group.replicas):
            holder = self.jobs.setdefault(name, spec.name)
            if holder != spec.name:
                raise Conflict(clash(name, spec.name, holder), hint="rename one of its replicated jobs")


def _entry_of(info: EntryInfo) -> Check:
    """Check an entry of the catalogue."""

    def check(trial: _Trial, _place: int, item: Item) -> Checked:
        entry, entries = entry_manifest(item, info), operations_of(info).of(trial.backend)
        try:
            entries.put(trial.caller, entry, create=trial.create, dry_run=True)
        finally:
            trial.pretended.pretend(entry)  # also if it is refused, so that references to it are no further problems
        return Checked(entry.name, tuple(entries.warnings(trial.caller, entry)))

    return check


def _set(trial: _Trial, place: int, item: Item) -> Checked:
    trial.owners[place] = SubmissionItem(JobSetSpec(name=name_of(item)))
    server, caller = trial.backend, trial.caller
    sets = SetWriter(server.store, server.clock, server.ids, alone=False, finder=server.seeing(caller))
    applied = (
        sets.create(item, lenient=trial.lenient, caller=caller, dry_run=True)
        if trial.create
        else sets.put(item, lenient=trial.lenient, create=trial.create, caller=caller, dry_run=True)
    )
    if not applied.job_set.id:  # the dependencies of an existing set cannot change
        trial.take_jobs(applied.spec)
        trial.owners[place] = SubmissionItem(applied.spec)
    return Checked(applied.spec.name, applied.warnings)


def _of_package(kind: KindInfo) -> Check:
    """Check work of an added kind, which has no dependencies."""

    def check(trial: _Trial, place: int, item: Item) -> Checked:
        trial.owners[place] = SubmissionItem(JobSpec(name_of(item), command=()), kind=kind.name)
        operations = import_module(f"{kind.package}.operations").OPERATIONS(trial.backend)
        outcome = operations.put(trial.caller, item, create=trial.create, dry_run=True)
        return Checked(name_of(item), outcome.warnings)

    return check


_JOB = "Job"


def _kinds() -> Mapping[str, Check]:
    """Return the check of each kind of manifest, in the order of writing; jobs come last, and are checked together."""
    further = {kind.manifest: _of_package(kind) for kind in KINDS.values() if kind.package and kind.manifest}
    entries = {info.manifest: _entry_of(info) for info in ENTRIES.values()}
    return {**entries, JOB_SET.manifest: _set, **further}


class Rehearsal(Struct, frozen=True):
    """Checks manifests without writing them."""

    backend: Backend

    @asks(Right.SUBMIT, Subject.JOB)
    def check(self, caller: Caller, items: Sequence[Item], *, verb: Verb, lenient: bool = False) -> list[Checked]:
        """Check manifests; returns the name and the warnings of each.

        Raises:
            HoldfastError: The error that writing the first invalid one would raise; with the problems of all.
        """
        pretended, kinds = _Pretended(self.backend.store), _kinds()
        create = {Verb.CREATE: True, Verb.UPDATE: False}.get(verb)
        trial = _Trial(replace(self.backend, store=cast("Store", pretended)), pretended, caller, create, lenient)
        owners, checked, errors = trial.owners, dict[int, Checked](), dict[int, HoldfastError]()
        names = [_kind(item, kinds) for item in items]
        for kind, check in kinds.items():
            for place in (place for place, name in enumerate(names) if name == kind):
                try:
                    checked[place] = check(trial, place, items[place])
                except HoldfastError as error:
                    errors[place] = error
        jobs = {
            place: job_item(written, lenient=lenient, engines=partial(engines_of, self.backend.store))
            for place, written in enumerate(items)
            if names[place] == _JOB
        }
        if verb is not Verb.CREATE:
            checked |= self._arrays_there(caller, jobs, errors)
        for place, problems in self._unmet(caller, owners, jobs):
            errors.setdefault(place, cannot_wait(items[place], owners[place].spec.name, problems))
        if jobs:
            submitter = evolve(trial.backend.submitter(caller), sets=list(owners.values()))
            refused = submitter.refusals(list(jobs.values()))
            errors |= {list(jobs)[place]: error for place, error in refused.items()}
            if not errors:
                submitter.require_room(list(jobs.values()))
        if errors:
            raise _first_of(errors, len(items))
        return [
            checked.get(place) or Checked(jobs[place].spec.name, jobs[place].warnings) for place in range(len(items))
        ]

    def _unmet(
        self, caller: Caller, owners: Mapping[int, SubmissionItem], jobs: Mapping[int, WrittenJob]
    ) -> Iterator[tuple[int, Sequence[Problem]]]:
        """Yield the problems of the dependencies of job sets and other owners, by their indexes."""
        submissions = [SubmissionItem(job.spec, job.array) for job in jobs.values()]
        resolver = DependencyResolver(self.backend.store, [*submissions, *owners.values()], self.backend.seeing(caller))
        for at, problems in resolver.problems().items():
            if at >= len(submissions):
                yield list(owners)[at - len(submissions)], problems

    def _arrays_there(
        self, caller: Caller, jobs: dict[int, WrittenJob], errors: dict[int, HoldfastError]
    ) -> dict[int, Checked]:
        """Compare arrays with existing ones of their names, and remove those from the jobs to submit."""
        store, seeing, checked = self.backend.store, self.backend.seeing(caller), {}
        for place, job in [(place, job) for place, job in jobs.items() if job.array is not None and job.error is None]:
            try:
                seeing.require_own(array_named(store, job.spec.name), Right.CHANGE)
                reshape(store, self.backend.clock, job.spec.name, job, dry_run=True)
                checked[place] = Checked(job.spec.name, job.warnings)
            except NotFound:
                continue
            except HoldfastError as error:
                errors[place] = error
            del jobs[place]
        return checked


def _first_of(errors: Mapping[int, HoldfastError], count: int) -> HoldfastError:
    """Return the error that writing the manifests would raise, with the problems of all."""
    first = next(iter(errors.values()))
    return first if count == 1 else type(first)(first.message, problems=problems_of(errors), hint=first.hint)


def _kind(item: Item, kinds: Collection[str]) -> str:
    """Return the kind of a manifest; anything unknown counts as a job, and is refused as one."""
    value = item.value if isinstance(item, Document) else item
    kind = value.get("kind")
    return kind if isinstance(kind, str) and kind in kinds else _JOB
