"""Dry run: checks manifests of any kinds together as if they were written one after the other, and writes none.

Each is checked as if those before it in the order of writing had been written.
"""

from __future__ import annotations

from enum import StrEnum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, cast

from holdfast.dialects.documents import Document
from holdfast.dialects.manifests import manifest_warnings
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import RetryPolicy
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.errors import HoldfastError, NotFound, Problem
from holdfast.service.access.asking import asks
from holdfast.service.admission.dependencies import Resolver, SubmissionItem
from holdfast.service.admission.many import problems_of
from holdfast.service.arrays import array_named
from holdfast.service.jobsets.sets import SetWriter, cannot_wait, name_of
from holdfast.service.manifests.reading import catalogue_manifest, has_array, job_item
from holdfast.service.naming import engines_of
from holdfast.service.operations.catalogue import Categories, Policies, Queues
from holdfast.service.operations.notifiers import Notifiers
from holdfast.service.reshape import reshape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.store import Store
    from holdfast.service.jobsets.sets import Applied
    from holdfast.service.operations.backend import Backend
    from holdfast.service.submit import Written

Item: TypeAlias = "Document | Mapping[str, Any]"
_ORDER = ("RetryPolicy", "Notifier", "Queue", "FailureCategory", "JobSet", "Job")


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
    """A store whose catalogue includes what would have been written so far."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._catalogue = store.catalogue()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def catalogue(self) -> Catalogue:
        return self._catalogue

    def pretend(self, manifest: RetryPolicy | Queue | FailureCategory | Notifier) -> None:
        known, name = self._catalogue, manifest.name
        if isinstance(manifest, RetryPolicy):
            self._catalogue = evolve(known, policies={**known.policies, name: manifest})
        elif isinstance(manifest, Queue):
            self._catalogue = evolve(known, queues={**known.queues, name: manifest})
        elif isinstance(manifest, Notifier):
            self._catalogue = evolve(known, notifiers={**known.notifiers, name: manifest})
        else:
            self._catalogue = evolve(known, categories=[*known.categories, manifest])


class Rehearsal(Struct, frozen=True):
    """Checks what would be written."""

    backend: Backend

    @asks(Right.SUBMIT, Subject.JOB)
    def check(self, caller: Caller, items: Sequence[Item], *, verb: Verb, lenient: bool = False) -> list[Checked]:
        """Check manifests; returns what is known of each.

        Raises:
            HoldfastError: What the first of them to be written would be refused for; with the problems of all.
        """
        pretended = _Pretended(self.backend.store)
        found: dict[int, Checked] = {}
        errors: dict[int, HoldfastError] = {}
        sets: dict[int, SubmissionItem] = {}
        names = [_kind(item) for item in items]
        for place in sorted(range(len(items)), key=lambda one: _ORDER.index(names[one])):
            try:
                if names[place] == "JobSet":
                    sets[place] = SubmissionItem(JobSetSpec(name=name_of(items[place])))
                    applied = self._check_set(caller, items[place], pretended, verb, lenient=lenient)
                    found[place] = Checked(applied.spec.name, applied.warnings)
                    # One that is there waits for what it waited for.
                    sets[place] = sets[place] if applied.job_set.id else SubmissionItem(applied.spec)
                elif names[place] != "Job":
                    found[place] = self._check(caller, items[place], pretended, verb)
            except HoldfastError as error:
                errors[place] = error
        jobs = {
            place: job_item(one, lenient=lenient, engines=partial(engines_of, self.backend.store))
            for place, one in enumerate(items)
            if names[place] == "Job"
        }
        if verb is not Verb.CREATE:
            found |= self._arrays_there(caller, jobs, errors)
        for place, problems in self._unmet(caller, sets, jobs):
            errors.setdefault(place, cannot_wait(items[place], sets[place].spec.name, problems))
        if jobs:
            store = cast("Store", pretended)
            submitter = evolve(self.backend.submitter(caller), store=store, sets=list(sets.values()))
            refused = submitter.refusals(list(jobs.values()))
            errors |= {list(jobs)[place]: error for place, error in refused.items()}
            if not errors:
                submitter.require_room(list(jobs.values()))
        if errors:
            raise _first_of(errors, len(items))
        return [found.get(place) or Checked(jobs[place].spec.name, jobs[place].warnings) for place in range(len(items))]

    def _unmet(
        self, caller: Caller, sets: Mapping[int, SubmissionItem], jobs: Mapping[int, Written]
    ) -> Iterator[tuple[int, Sequence[Problem]]]:
        """Say what is wrong with what job sets wait for, which may be among the jobs."""
        known = [SubmissionItem(job.spec, job.array) for job in jobs.values()]
        resolver = Resolver(self.backend.store, [*known, *sets.values()], self.backend.seeing(caller))
        for at, problems in resolver.problems().items():
            if at >= len(known):
                yield list(sets)[at - len(known)], problems

    def _arrays_there(
        self, caller: Caller, jobs: dict[int, Written], errors: dict[int, HoldfastError]
    ) -> dict[int, Checked]:
        """Compare arrays with those that are there, and take them out of what would be submitted."""
        store, seeing, found = self.backend.store, self.backend.seeing(caller), {}
        for place, job in [(place, job) for place, job in jobs.items() if job.array is not None and job.error is None]:
            try:
                seeing.require_own(array_named(store, job.spec.name), Right.CHANGE)
                reshape(store, self.backend.clock, job.spec.name, job, dry_run=True)
                found[place] = Checked(job.spec.name, job.warnings)
            except NotFound:
                continue
            except HoldfastError as error:
                errors[place] = error
            del jobs[place]
        return found

    def _check_set(self, caller: Caller, item: Item, pretended: _Pretended, verb: Verb, *, lenient: bool) -> Applied:
        server, store = self.backend, cast("Store", pretended)
        sets = SetWriter(store, server.clock, server.ids, alone=False, finder=server.seeing(caller))
        if verb is Verb.CREATE:
            return sets.create(item, lenient=lenient, by=caller, dry_run=True)
        create = False if verb is Verb.UPDATE else None
        return sets.put(item, lenient=lenient, create=create, by=caller, dry_run=True)

    def _check(self, caller: Caller, item: Item, pretended: _Pretended, verb: Verb) -> Checked:
        store, create = cast("Store", pretended), {Verb.CREATE: True, Verb.UPDATE: False}.get(verb)
        manifest = catalogue_manifest(item)
        try:
            match manifest:
                case RetryPolicy():
                    Policies(store).put(caller, manifest, create=create, dry_run=True)
                case Queue():
                    Queues(store).put(caller, manifest, create=create, dry_run=True)
                case FailureCategory():
                    Categories(store).put(caller, manifest, create=create, dry_run=True)
                case Notifier():
                    Notifiers(store).put(caller, manifest, create=create, dry_run=True)
                case _:
                    assert_never(manifest)
        finally:
            pretended.pretend(manifest)  # also if it is refused: references to it are not wrong
        warnings = manifest_warnings(manifest)
        if isinstance(manifest, Queue):
            warnings = (*warnings, *Queues(store).warnings(caller, manifest, self.backend.nodes, self.backend.is_group))
        return Checked(manifest.name, warnings)


def _first_of(errors: Mapping[int, HoldfastError], count: int) -> HoldfastError:
    """Return the error that writing them would end with, which tells the problems of all."""
    first = next(iter(errors.values()))
    return first if count == 1 else type(first)(first.message, problems=problems_of(errors), hint=first.hint)


def _kind(item: Item) -> str:
    """Return what a manifest is of; what has no kind that is written under a name is a job, or refused as none."""
    value = item.value if isinstance(item, Document) else item
    kind = value.get("kind")
    if has_array(item):
        return "Job"
    return kind if isinstance(kind, str) and kind in _ORDER else "Job"
