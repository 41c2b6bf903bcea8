"""Creates and changes job sets."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from holdfast.compiled.codec import SetChange, dump_change, dump_set_spec, load_manifest, load_set_spec
from holdfast.dialects.documents import Document
from holdfast.dialects.jobset.canonical import canonical_set
from holdfast.dialects.jobset.loading import child_spec, dump_set
from holdfast.dialects.jobset.updates import check_update
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.dialects.manifests import located, read_one
from holdfast.dialects.native.envelope import API_VERSION
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import ChildOf, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.jobset.model import JobSetSpec, clash, job_name
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState
from holdfast.errors import AlreadyExists, Conflict, InvalidManifest, NotFound, Problem
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import JobFilter, Submission
from holdfast.service.admission.dependencies import DependencyResolver, SubmissionItem
from holdfast.service.admission.finding import Everything
from holdfast.service.admission.limits import check_key
from holdfast.service.admission.records import new_job
from holdfast.service.jobsets.checks import check_set
from holdfast.service.kube_paths import in_kubernetes
from holdfast.service.naming import engines_of, not_found
from holdfast.service.quarantined import shown_set
from holdfast.service.refusals import audited, put_act
from holdfast.service.steering.control import in_order, require_match
from holdfast.service.steering.jobsets import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.store import Store
    from holdfast.service.admission.finding import Finder
    from holdfast.service.steering.control import Versions

WrittenSet: TypeAlias = "Document | Mapping[str, Any]"
"""A manifest as sent."""


class Applied(Struct, frozen=True):
    """The result of creating or applying a job set."""

    job_set: JobSet
    spec: JobSetSpec
    result: str
    """``created``, ``updated`` or ``unchanged``; ``valid`` for a dry run."""
    warnings: tuple[Problem, ...] = ()


class _Read(Struct, frozen=True):
    """A job set read from its manifest."""

    spec: JobSetSpec
    manifest: str
    warnings: tuple[Problem, ...]
    met: tuple[int, ...] = ()
    """Indexes of the dependencies that hold already."""


def set_named(store: Store, reference: str) -> JobSet:
    """Find a job set by name or id, with all pending requests applied.

    Raises:
        NotFound: It does not exist.
    """
    return shown_set(JOB_SETS.as_accepted(store.asked_of(JobSet, reference)), store.quarantined())


class SetWriter(Struct, frozen=True):
    """Creates and changes job sets."""

    store: Store
    clock: Clock
    ids: Ids
    alone: bool = True
    """Whether its dependencies must be stored already; otherwise the caller resolves them."""
    finder: Finder | None = None
    """Finds the work that the caller may see; by default all work."""

    @property
    def _finder(self) -> Finder:
        return self.finder or Everything(self.store)

    def create(
        self,
        written: WrittenSet,
        *,
        lenient: bool = False,
        caller: Caller | None = None,
        key: str | None = None,
        dry_run: bool = False,
    ) -> Applied:
        """Create a job set with all of its jobs.

        Args:
            written: Its manifest, in any format for job sets.
            lenient: Accept what upstream accepts, with a warning for each difference.
            caller: The caller.
            key: Idempotency key; sending the same again with it stores nothing and returns the first answer.
            dry_run: Check everything and store nothing.

        Raises:
            InvalidManifest: It is not valid, or names something that does not exist; with all problems.
            Refused: A limit of its queue could never hold one of its pods.
            AlreadyExists: A job set of that name exists.
            Conflict: It is being deleted; a job of another set has the name of one of its jobs; or the idempotency key
                was used for something else.
        """
        with audited(self.store, None if dry_run else caller, Act.CREATE, Subject.JOB_SET, name_of(written)):
            check_key(key)
            read = self._read_new(written, lenient=lenient, caller=caller)
            try:
                return (
                    self._checked(read, lenient=lenient, caller=caller)
                    if dry_run
                    else self._created(read, lenient=lenient, caller=caller, key=key)
                )
            except AlreadyExists:
                existing = self._find(read.spec.name)
                if existing is not None and existing.deleting:
                    raise _going(existing) from None
                raise

    def put(
        self,
        written: WrittenSet,
        *,
        lenient: bool = False,
        create: bool | None = None,
        caller: Caller | None = None,
        dry_run: bool = False,
        if_match: Versions = None,
    ) -> Applied:
        """Create a job set, or change the one of that name; with ``create`` false it must exist.

        The change accepted last counts, whether or not the controller has carried out the earlier ones. A set that was
        created strictly is always read strictly.

        Raises:
            InvalidManifest: It is not valid, or changes what may not change; with all problems.
            Refused: A limit of its queue could never hold one of its pods.
            NotFound: It must exist, and does not.
            VersionConflict: It has none of the versions in ``if_match``.
            Conflict: It is being deleted; or it is new, and a job of another set has the name of one of its jobs.
        """
        name = name_of(written)
        must_exist = create is False or if_match is not None

        def put() -> Applied:
            existing = self._find(name)
            if existing is None and must_exist:
                raise not_found(name, (), "job set")
            if existing is not None:
                self._finder.require_own(existing, must_exist=must_exist)
                require_match(existing, if_match)
                return self._changed(existing, written, lenient=lenient, caller=caller, dry_run=dry_run)
            read = self._read_new(written, lenient=lenient, caller=caller)
            if dry_run:
                return self._checked(read, lenient=lenient, caller=caller)
            return self._created(read, lenient=lenient, caller=caller, key=None)

        with audited(self.store, None if dry_run else caller, put_act(create=create), Subject.JOB_SET, name):
            return in_order(put, if_match)

    def _find(self, name: str) -> JobSet | None:
        try:
            job_set = set_named(self.store, name)
        except NotFound:
            return None
        return job_set if job_set.name == name else None

    def _read(self, written: WrittenSet, *, lenient: bool, caller: Caller | None) -> _Read:
        """Read a manifest, and check it against the catalogue."""
        reading = read_one(written, lenient=lenient, engines=partial(engines_of, self.store))
        if reading.manifest is None:
            raise InvalidManifest(problems=reading.problems)
        spec = reading.manifest
        if not isinstance(spec, JobSetSpec):
            problem = Problem("kind", "only job sets are accepted here", ("JobSet",), "send jobs to /jobs")
            raise InvalidManifest(problems=[problem])
        value = written.value if isinstance(written, Document) else written
        error = check_set(spec, self.store.catalogue(), value, caller)
        if error is not None:
            problems = [located(problem, written) for problem in error.problems]
            raise type(error)(error.message, problems=problems, hint=error.hint)
        return _Read(spec, dump_set(value), reading.warnings)

    def _read_new(self, written: WrittenSet, *, lenient: bool, caller: Caller | None) -> _Read:
        """Read the manifest of a new set, and resolve its dependencies."""
        read = self._read(written, lenient=lenient, caller=caller)
        if not read.spec.after or not self.alone:
            return read
        resolver = DependencyResolver(self.store, [SubmissionItem(read.spec)], self.finder)
        if problems := resolver.problems():
            raise cannot_wait(written, read.spec.name, problems[0])
        awaited = resolver.resolved(0, {})
        return evolve(read, spec=evolve(read.spec, after=awaited.after), met=awaited.met)

    def _checked(self, read: _Read, *, lenient: bool, caller: Caller | None) -> Applied:
        """Answer a dry run for a new set."""
        if self._find(read.spec.name) is not None:
            msg = f"job set {read.spec.name!r} exists already"
            raise AlreadyExists(msg, hint="apply it to change it, or use another name")
        self._require_own_jobs(read.spec)
        row = self._new_row(read, "", self.clock.now(), lenient=lenient, caller=caller)
        if limited := self.store.catalogue().limiting:
            jobs = [job for job, _ in jobs_of(row, read.spec, lambda _: "")]
            self.store.require_room(Submission(jobs, owner=row, limited=limited), row.created_at)
        return Applied(row, read.spec, "valid", read.warnings)

    def _require_own_jobs(self, spec: JobSetSpec) -> None:
        for group in spec.replicated_jobs:
            name = job_name(spec.name, group.name, 0)
            clashing = self.store.jobs(JobFilter(name=name)) if group.replicas else ()
            sets = self.store.workloads_by_id(JobSet, [job.child.set_id for job in clashing if job.child])
            for holder in sets.values():
                raise Conflict(clash(name, spec.name, holder.name), hint="rename one of its replicated jobs")

    def _created(self, read: _Read, *, lenient: bool, caller: Caller | None, key: str | None) -> Applied:
        row = self._new_row(read, self.ids.new(), self.clock.now(), lenient=lenient, caller=caller)
        created = list(jobs_of(row, read.spec, lambda _: self.ids.new()))
        jobs = [job for job, _ in created]
        ids = self.store.submit(
            Submission(
                jobs=jobs,
                labels={job.id: described.labels for job, described in created},
                idempotency_key=key,
                fingerprint=hashlib.sha256(read.manifest.encode()).hexdigest() if key else "",
                owner=row,
                caller=caller,
                limited=self.store.catalogue().limiting,
                policies={name for group in read.spec.replicated_jobs for name in group.retry_policies},
                awaited=[awaited.id for awaited in read.spec.after if self.alone and not awaited.outcome],
            )
        )
        if key is not None and (not jobs or ids[:1] != (jobs[0].id,)):
            return self._first_time(read, ids)
        return Applied(row, read.spec, "created", read.warnings)

    def _first_time(self, read: _Read, ids: Sequence[str]) -> Applied:
        """Repeat the answer to the first submission with the key, as long as its set exists."""
        (first,) = self.store.jobs_by_id(ids[:1]) or (None,)
        if first is None or first.child is None:
            return Applied(set_named(self.store, read.spec.name), read.spec, "created", read.warnings)
        return Applied(set_named(self.store, first.child.set_id), read.spec, "created", read.warnings)

    @staticmethod
    def _new_row(read: _Read, set_id: str, now: float, *, lenient: bool, caller: Caller | None) -> JobSet:
        return JobSet(
            id=set_id,
            name=read.spec.name,
            created_at=now,
            manifest=read.manifest,
            spec=dump_set_spec(read.spec),
            lenient=lenient,
            state=JobSetState(met=read.met),
            updated_at=now,
            submitted_by="" if caller is None else caller.principal.name,
            submitter_uid=None if caller is None else caller.principal.uid,
            group=read.spec.group,
            queue=read.spec.queue_name,
        )

    def _changed(
        self, existing: JobSet, written: WrittenSet, *, lenient: bool, caller: Caller | None, dry_run: bool
    ) -> Applied:
        if existing.deleting:
            raise _going(existing)
        try:
            read = self._read(written, lenient=lenient and existing.lenient, caller=caller)
        except InvalidManifest as error:
            if lenient is existing.lenient:
                raise
            how = "leniently, and can be applied so again" if existing.lenient else "strictly, and stays so"
            hint = f"job set {existing.name!r} was created {how}"
            raise InvalidManifest(error.message, problems=error.problems, hint=hint) from error
        before = load_set_spec(existing.spec)
        new_spec = evolve(read.spec, after=before.after)  # resolved at creation, and cannot change
        now, then = json.loads(read.manifest), load_manifest(existing.manifest)
        if canonical_set(now) == canonical_set(then) or new_spec == before:
            return Applied(existing, before, "valid" if dry_run else "unchanged", read.warnings)
        notes = ManifestNotes()
        check_update(then, now, notes, finished=bool(existing.state.terminal))
        if notes.problems:
            msg = f"job set {existing.name!r} cannot be changed in this way"
            raise InvalidManifest(msg, problems=[located(problem, written) for problem in notes.problems])
        if dry_run:
            return Applied(existing, new_spec, "valid", read.warnings)
        actor = caller.actor if caller else ""
        change = dump_change(SetChange(read.manifest, dump_set_spec(new_spec)))
        request = Request(RequestKind.UPDATE, (existing.id,), self.clock.now(), actor=actor, payload=change)
        self.store.append(request, caller=caller, version=existing.version)
        return Applied(JOB_SETS.accepted(existing, request), new_spec, "updated", read.warnings)


def cannot_wait(written: WrittenSet, name: str, problems: Sequence[Problem]) -> InvalidManifest:
    """Return the error for a set's dependencies; the problems' paths are those of the native format."""
    value = written.value if isinstance(written, Document) else written
    native_problems = (
        problems if value.get("apiVersion") == API_VERSION else [in_kubernetes(problem, "") for problem in problems]
    )
    return InvalidManifest(
        f"job set {name!r} is not valid", problems=[located(problem, written) for problem in native_problems]
    )


def _going(existing: JobSet) -> Conflict:
    return Conflict(f"job set {existing.name!r} is being deleted", hint="create it again once it is gone")


def name_of(written: WrittenSet) -> str:
    """Return the name in a manifest; empty if it has none, or none that is text."""
    value = written.value if isinstance(written, Document) else written
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def jobs_of(row: JobSet, spec: JobSetSpec, new_id: Callable[[str], str]) -> Iterator[tuple[Job, JobSpec]]:
    """Make all jobs of a set. Those of one replicated job share one specification.

    Args:
        row: The set.
        spec: Its specification.
        new_id: Makes the id of the job of a name.

    Yields:
        The new job, and its specification.
    """
    for group in spec.replicated_jobs:
        described = child_spec(spec, group)
        pattern = evolve(
            new_job(described, "", row.created_at),
            kind=KUBEJOB,
            state=JobState.WAITING,
            submitted_by=row.submitted_by,
            submitter_uid=row.submitter_uid,
            group=row.group,
        )
        for index in range(group.replicas):
            name = job_name(spec.name, group.name, index)
            yield evolve(pattern, id=new_id(name), name=name, child=ChildOf(row.id, group.name, index)), described
