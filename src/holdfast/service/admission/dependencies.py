"""Resolves the dependencies of jobs, arrays and job sets, within their submission and among stored work.

A dependency that has ended by then counts with its outcome at that time; nothing later changes it.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, NamedTuple

from holdfast.compiled.codec import load_array
from holdfast.compiled.workloads import stored_kinds
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.kinds import KINDS, info_of
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.dependencies import (
    AwaitedState,
    Condition,
    DependencyKind,
    holds,
    state_of,
    waits_for,
)
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.errors import InvalidManifest, NotFound, Problem
from holdfast.ports.requests import RequestKind
from holdfast.service.admission.finding import Everything
from holdfast.service.naming import MOST_LISTED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.errors import HoldfastError
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.store import Store
    from holdfast.service.admission.finding import Finder

_LONGEST_REASON = 200
_MOST_PENDING = 10_000
_NOT_STARTED = "only a job's start can be waited for"
_ANY = " or ".join(", ".join(kind.noun for kind in KINDS.values()).rsplit(", ", 1))
_LIST = "list jobs with: holdfast get jobs"


class SubmissionItem(NamedTuple):
    """A job, an array or other work of a submission."""

    spec: JobSpec | JobSetSpec
    array: ArraySpec | None = None
    """The array, if it is one."""
    kind: str = ""
    """The name of its kind, if that is an added one."""

    @property
    def target(self) -> str:
        """Its kind, as dependencies name it."""
        if self.kind:
            return self.kind
        if isinstance(self.spec, JobSetSpec):
            return DependencyKind.JOB_SET
        return DependencyKind.JOB if self.array is None else DependencyKind.ARRAY


class DependencyTarget(NamedTuple):
    """The work that a dependency names."""

    target: str
    id: str
    name: str
    standing: AwaitedState
    array: ArraySpec | None = None
    place: int | None = None
    """Its index in the submission, if it is part of it."""


class Resolved(Struct, frozen=True):
    """The resolved dependencies of a job."""

    after: tuple[Dependency, ...]
    met: tuple[int, ...] = ()
    """Indexes of those that hold already."""

    def applied(self, job: Job) -> Job:
        """Make a new job wait for those that do not hold yet."""
        if not self.after:
            return job
        if len(self.met) == len(self.after):
            return evolve(job, ready_at=job.submitted_at)
        return evolve(job, state=JobState.WAITING, reason=waits_for(self.after, self.met), met=self.met)


NOTHING = Resolved(())


def about_to_be_retried(store: Store) -> frozenset[str]:
    """Return the ended jobs whose retry was requested and is still to be carried out."""
    last = {
        key: request.kind
        for request in store.requests(limit=_MOST_PENDING)
        if request.kind in {RequestKind.RETRY, RequestKind.CANCEL}
        for key in request.targets
    }
    return frozenset(key for key, kind in last.items() if kind is RequestKind.RETRY)


class DependencyResolver:
    """Resolves the dependencies of the jobs, arrays and job sets of one submission."""

    def __init__(
        self,
        store: Store,
        items: Sequence[SubmissionItem | None],
        finder: Finder | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        """Prepare to resolve.

        Args:
            store: Has all other work.
            items: The submission; ``None`` for an item that could not be read.
            finder: Finds the work that the submitter may see; by default all work.
            catalogue: The current catalogue; by default it is read.
        """
        self._finder, self._store = finder or Everything(store), store
        self._items = items
        self.catalogue = store.catalogue() if catalogue is None else catalogue
        """As of the start."""
        self._waits = any(item is not None and item.spec.after for item in items)
        self._owners = {
            kind: stored.record for kind, stored in stored_kinds().items() if issubclass(stored.record, Owner)
        }
        self._named: dict[str, list[int]] = {}
        self._resolved: dict[tuple[str | None, str], DependencyTarget | Problem] = {}
        if self._waits:
            for place, item in enumerate(items):
                if item is not None:
                    self._named.setdefault(item.spec.name, []).append(place)

    def problems(self) -> dict[int, list[Problem]]:
        """Return the problems of dependencies by the index of the item; paths begin with ``spec``."""
        by_place: dict[int, list[Problem]] = {}
        edges: dict[int, dict[int, int]] = {}
        if not self._waits:
            return by_place
        for place, item in enumerate(self._items):
            for at, dependency in enumerate(item.spec.after if item is not None else ()):
                if not dependency.name:
                    continue
                seen = self._find(place, dependency)
                if isinstance(seen, DependencyTarget) and seen.place is not None:
                    edges.setdefault(place, {})[seen.place] = at
                wrong = seen if isinstance(seen, Problem) else self._wrong(place, dependency, seen)
                if wrong is not None:
                    by_place.setdefault(place, []).append(evolve(wrong, path=f"spec.dependsOn[{at}]"))
        for place, problem in self._cycles(edges):
            by_place.setdefault(place, []).append(problem)
        return by_place

    def with_what_waits(self, errors: Mapping[int, HoldfastError], count: int) -> Mapping[int, HoldfastError]:
        """Add errors for the items that wait, directly or through others, for one that is refused."""
        refused, before = dict(errors), -1
        while before != len(refused):
            before = len(refused)
            for place in range(count):
                other = None if place in refused else self.depends_on(place, refused.keys())
                if other is not None:
                    problem = Problem("spec.dependsOn", f"waits for {other!r}, which is refused")
                    refused[place] = InvalidManifest(problems=[problem])
        return refused

    def depends_on(self, place: int, refused: Collection[int]) -> str | None:
        """Return the name of a refused item that an item waits for, if any."""
        item = self._items[place]
        for dependency in item.spec.after if item is not None else ():
            seen = self._find(place, dependency)
            if isinstance(seen, DependencyTarget) and seen.place in refused:
                return seen.name
        return None

    def resolved(self, place: int, ids: Mapping[int, str]) -> Resolved:
        """Resolve the dependencies of an item without problems; ``ids`` are those of the other items, by index."""
        item, after, met = self._items[place], [], []
        for at, dependency in enumerate(item.spec.after if item is not None else ()):
            seen = self._find(place, dependency)
            if isinstance(seen, Problem):
                continue
            key = seen.id if seen.place is None else ids[seen.place]
            if dependency.by_index:
                after.append(evolve(dependency, name=seen.name, target=seen.target, id=key))
                continue
            if holds(dependency, seen.standing):
                met.append(at)
            after.append(
                evolve(
                    dependency,
                    name=seen.name,
                    target=seen.target,
                    id=key,
                    outcome=seen.standing.outcome,
                    reason=seen.standing.reason[:_LONGEST_REASON],
                )
            )
        return Resolved(tuple(after), tuple(met))

    # one by one

    def _find(self, place: int, dependency: Dependency) -> DependencyTarget | Problem:
        """Find the work that a dependency names, first in the submission, then in the store."""
        own = self._items[place]
        if own is not None and dependency.name == own.spec.name and dependency.target in {None, own.target}:
            message = f"{info_of(own.target).noun} {own.spec.name!r} cannot wait for itself"
            return Problem("", message, hint="refer to an earlier one of that name by its id")
        key = (dependency.target, dependency.name)
        if key not in self._resolved:
            self._resolved[key] = self._in_submission(dependency) or self._stored(place, dependency)
        return self._resolved[key]

    def _in_submission(self, dependency: Dependency) -> DependencyTarget | Problem | None:
        places = []
        for place in self._named.get(dependency.name, ()):
            item = self._items[place]
            if item is not None and dependency.target in {None, item.target}:
                places.append((place, item))
        if len(places) > 1:
            message = f"{len(places)} items of this submission are named {dependency.name!r}"
            kinds = dict.fromkeys(f"{item.target}/{dependency.name}" for _, item in places)
            return Problem("", message, tuple(kinds) if len(kinds) == len(places) else (), "give each its own name")
        for place, item in places:
            return DependencyTarget(item.target, "", item.spec.name, AwaitedState(), item.array, place)
        return None

    def _stored(self, place: int, dependency: Dependency) -> DependencyTarget | Problem:
        candidates: list[DependencyTarget] = []
        error_found: NotFound | None = None
        if dependency.target in {None, DependencyKind.JOB}:
            try:
                job = self._finder.find_job(dependency.name)
                retried = job.terminal and job.id in about_to_be_retried(self._store)
                standing = AwaitedState() if retried else state_of(job)
                candidates.append(DependencyTarget(DependencyKind.JOB, job.id, job.name, standing))
            except NotFound as error:
                error_found = error
        for target, kind in self._owners.items():
            row = self._owner(kind, dependency.name) if dependency.target in {None, target} else None
            if row is not None:
                spec = load_array(row.spec) if isinstance(row, Array) else None
                candidates.append(DependencyTarget(target, row.id, row.name, state_of(row), spec))
        exact = [candidate for candidate in candidates if dependency.name in {candidate.id, candidate.name}]
        candidates = exact or candidates
        if len(candidates) == 1:
            return candidates[0]
        if candidates:
            allowed = tuple(f"{candidate.target}/{dependency.name}" for candidate in candidates)
            return Problem(
                "", f"more than one workload is named {dependency.name!r}", allowed, "say which kind you mean"
            )
        return self._unknown(place, dependency, error_found)

    def _owner(self, kind: type[Owner], reference: str) -> Owner | None:
        try:
            return self._finder.find_workload(kind, reference)
        except NotFound:
            return None

    def _unknown(self, place: int, dependency: Dependency, error: NotFound | None) -> Problem:
        own = self._items[place]
        names = dict.fromkeys(name for name in self._named if own is None or name != own.spec.name)
        for kind in self._owners.values():
            names |= dict.fromkeys(self._finder.names(kind, limit=MOST_LISTED))
        noun = _ANY if dependency.target is None else info_of(dependency.target).noun
        message = f"no {noun} has the id or name {dependency.name!r}"
        if error is not None and "more than one" in error.message:
            message = error.message
        return Problem("", message, tuple(names)[:MOST_LISTED], closest(dependency.name, names) or _LIST)

    def _wrong(self, place: int, dependency: Dependency, seen: DependencyTarget) -> Problem | None:
        """Check that the target can be waited for in this way."""
        item = self._items[place]
        if not dependency.by_index or item is None or item.array is None:
            if dependency.condition is Condition.STARTED and seen.target != DependencyKind.JOB:
                allowed = tuple(condition.value for condition in Condition if condition is not Condition.STARTED)
                return Problem("", f"{_NOT_STARTED}, not that of {info_of(seen.target).noun} {seen.name!r}", allowed)
            return None
        if seen.array is None:
            hint = "leave out index to wait for all of it"
            return Problem(
                "", f"{info_of(seen.target).noun} {seen.name!r} has no tasks to wait for by index", hint=hint
            )
        theirs = set(seen.array.every_index())
        missing = next((index for index in item.array.every_index() if index not in theirs), None)
        if missing is None:
            return None
        hint = "each task waits for the one of its own index"
        return Problem("", f"array {seen.name!r} has no task {missing} to wait for", hint=hint)

    def _cycles(self, edges: Mapping[int, Mapping[int, int]]) -> list[tuple[int, Problem]]:
        """Report each cycle, at its first item."""
        cycles: list[tuple[int, Problem]] = []
        left = {place: set(others) for place, others in edges.items()}
        while len(cycles) < MOST_LISTED:
            try:
                TopologicalSorter(left).prepare()
                break
            except CycleError as error:
                ring = error.args[1][::-1][:-1]  # the first is the last again; each waits for the next
            first = ring.index(min(ring))
            ring = [*ring[first:], *ring[:first]]
            names = [item.spec.name for place in ring if (item := self._items[place]) is not None]
            path = f"spec.dependsOn[{edges[ring[0]][ring[1]]}]"
            message = f"waits for itself through others: {' -> '.join([*names, names[0]])}"
            cycles.append((ring[0], Problem(path, message, hint="remove one of these dependencies")))
            left[ring[0]].discard(ring[1])
        return cycles
