"""Job sets: list, create, read, apply, explain, suspend, resume, restart and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_manifest
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import UnreadableSpec
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.jobsets.explain import SetExplainer, SetExplanation
from holdfast.service.jobsets.sets import LARGEST_PAGE, Applied, Child, ChildPage, JobSets, SetPage
from holdfast.service.manifests.made_names import with_names
from holdfast.service.manifests.reading import document_named, one_document
from holdfast.service.operations.steering import Steers
from holdfast.service.steering.jobsets import JOB_SETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.ports.workloads import WorkloadFilter
    from holdfast.service.manifests.text import Text
    from holdfast.service.turns import Versions

__all__ = ["LARGEST_PAGE", "Applied", "Child", "ChildPage", "SetExplanation", "SetPage"]


class JobSetOperations(Steers[JobSet], frozen=True):
    """What can be asked of job sets."""

    rules = JOB_SETS

    def _sets(self, caller: Caller | None = None) -> JobSets:
        finder = None if caller is None else self.backend.seeing(caller)
        return JobSets(self.backend.store, self.backend.clock, self.backend.ids, finder=finder)

    @asks(Right.WATCH, Subject.JOB_SET)
    def page(
        self, caller: Caller, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = LARGEST_PAGE
    ) -> SetPage:
        """List job sets by name, as they are with all that was asked of them."""
        return self._sets().page(self.backend.seeing(caller).workloads(JobSet, where), after=after, limit=limit)

    @asks(Right.SUBMIT, Subject.JOB_SET)
    def create(
        self, caller: Caller, body: Text, *, lenient: bool = False, key: str | None = None, dry_run: bool = False
    ) -> Applied:
        """Create a job set with all of its jobs; it must be new. See ``JobSets.create``."""
        [document] = with_names([one_document(body, lenient=lenient)], self.backend.ids, key)
        found = self._sets(caller).create(document, lenient=lenient, by=caller, key=key, dry_run=dry_run)
        if found.result == "created":
            self.backend.count(found.spec.replicas, 0)
        return found

    @asks(Right.SUBMIT, Subject.JOB_SET)
    def apply(  # noqa: PLR0913 - what there is to say of it
        self,
        caller: Caller,
        ref: str,
        body: Text,
        *,
        must_exist: bool = False,
        if_match: Versions = None,
        lenient: bool = False,
        dry_run: bool = False,
    ) -> Applied:
        """Create a job set, or change the one of that name; see ``JobSets.put``."""
        document, create = document_named(body, ref, lenient=lenient), False if must_exist else None
        return self._sets(caller).put(
            document, lenient=lenient, create=create, by=caller, dry_run=dry_run, if_match=if_match
        )

    @asks(Right.WATCH, Subject.JOB_SET)
    def get(self, caller: Caller, ref: str) -> JobSet:
        """Read a job set, as it is with all that was asked of it.

        Raises:
            NotFound: There is none.
        """
        seeing = self.backend.seeing(caller)
        return seeing.job_set(self._sets().get(seeing.workload(Right.WATCH, JobSet, ref)))

    @asks(Right.WATCH, Subject.JOB_SET)
    def manifest(self, _caller: Caller, job_set: JobSet) -> Mapping[str, Any]:
        """Return what a set was last asked to be; one that cannot be read is shown as it is stored."""
        try:
            return load_manifest(job_set.manifest)
        except UnreadableSpec:
            return {"unreadable": job_set.manifest}

    @asks(Right.WATCH, Subject.JOB_SET)
    def children(self, _caller: Caller, job_set: JobSet, *, after: int = 0, limit: int = LARGEST_PAGE) -> ChildPage:
        """List a set's jobs by replicated job and index, and what is known of their pods."""
        return self._sets().children(job_set, after=after, limit=limit)

    @asks(Right.WATCH, Subject.JOB_SET)
    def log(
        self, caller: Caller, ref: str, *, after: int = 0, limit: int = LARGEST_PAGE, tail: int | None = None
    ) -> Sequence[SetLogEntry]:
        """Read what was decided about a set's failed jobs, and what else there is to know; or the last of it.

        Raises:
            NotFound: There is no such set.
        """
        sets = self._sets()
        job_set = sets.get(self._named(caller, Right.WATCH, ref))
        return sets.log(job_set, after=after, limit=limit) if tail is None else sets.last_log(job_set, tail)

    @asks(Right.WATCH, Subject.JOB_SET)
    def why(self, caller: Caller, ref: str, *, job: str | None = None) -> SetExplanation:
        """Explain why a set is where it is; see ``SetExplainer.why``."""
        ref = self._named(caller, Right.WATCH, ref)
        quoting = self.backend.seeing(caller).reads(self.backend.store.left_of(JobSet, ref))
        return SetExplainer(self._sets()).why(ref, job=job, quoting=quoting)
