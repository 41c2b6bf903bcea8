"""Job sets: list, create, read, apply, explain, suspend, resume, restart and delete them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_manifest
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import UnreadableSpec
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.jobsets.control import SetControl
from holdfast.service.jobsets.explain import SetExplainer, SetExplanation
from holdfast.service.jobsets.sets import LARGEST_PAGE, Applied, Child, ChildPage, JobSets, SetPage
from holdfast.service.manifests.made_names import with_names
from holdfast.service.manifests.reading import document_named, one_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.ports.workloads import WorkloadFilter
    from holdfast.service.manifests.text import Text
    from holdfast.service.operations.backend import Backend
    from holdfast.service.turns import Versions

__all__ = ["LARGEST_PAGE", "Applied", "Child", "ChildPage", "SetExplanation", "SetPage"]


class JobSetOperations(Struct, frozen=True):
    """What can be asked of job sets."""

    backend: Backend

    def _sets(self, caller: Caller | None = None) -> JobSets:
        finder = None if caller is None else self.backend.seeing(caller)
        return JobSets(self.backend.store, self.backend.clock, self.backend.ids, finder=finder)

    def _control(self) -> SetControl:
        return SetControl(self.backend.store, self.backend.clock)

    def _named(self, caller: Caller, right: Right, ref: str) -> str:
        return self.backend.seeing(caller).workload(right, JobSet, ref)

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

    @asks(Right.CHANGE, Subject.JOB_SET)
    def suspend(self, caller: Caller, ref: str, reason: str = "", *, if_match: Versions = None) -> JobSet:
        """Ask for a set to be stopped and kept.

        Raises:
            NotFound: There is no such set.
            Conflict: It has ended, or is being deleted.
        """
        return self._control().suspend(self._named(caller, Right.CHANGE, ref), reason, by=caller, if_match=if_match)

    @asks(Right.CHANGE, Subject.JOB_SET)
    def resume(self, caller: Caller, ref: str, reason: str = "", *, if_match: Versions = None) -> JobSet:
        """Ask to resume a suspended set.

        Raises:
            NotFound: There is no such set.
            Conflict: It has ended, or is being deleted.
        """
        return self._control().resume(self._named(caller, Right.CHANGE, ref), reason, by=caller, if_match=if_match)

    @asks(Right.CHANGE, Subject.JOB_SET)
    def restart(
        self,
        caller: Caller,
        ref: str,
        reason: str = "",
        *,
        group: str | None = None,
        index: int | None = None,
        if_match: Versions = None,
    ) -> JobSet:
        """Ask for a restart of a set, one of its replicated jobs, or one job of that; see ``SetControl.restart``."""
        ref = self._named(caller, Right.CHANGE, ref)
        return self._control().restart(ref, group=group, index=index, reason=reason, by=caller, if_match=if_match)

    @asks(Right.CANCEL, Subject.JOB_SET)
    def delete(self, caller: Caller, ref: str, reason: str = "", *, if_match: Versions = None) -> JobSet:
        """Ask for a set to be deleted; it goes when its programs have stopped, and its jobs stay as history.

        Raises:
            NotFound: There is no such set.
        """
        return self._control().delete(self._named(caller, Right.CANCEL, ref), reason, by=caller, if_match=if_match)
