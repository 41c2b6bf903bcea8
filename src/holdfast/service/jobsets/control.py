"""Suspends, resumes, restarts and deletes job sets by asking the controller to.

What a set's state, with everything asked of it before, does not allow is refused here, so that a caller hears it at
once; the controller alone changes the set. With ``if_match`` a request is accepted only while the set has one of
these versions, else ``VersionConflict``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_set_spec, set_spec_of, suspending
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, Internal, InvalidRequest, Problem
from holdfast.ports.requests import Request, RequestKind
from holdfast.service.jobsets.accepted import accepted, as_accepted, require_match
from holdfast.service.refusals import audited
from holdfast.service.turns import in_order

if TYPE_CHECKING:
    from holdfast.domain.audit import Caller
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store
    from holdfast.service.turns import Versions


class SetControl(Struct, frozen=True):
    """Asks the controller to do something with a job set."""

    store: Store
    clock: Clock
    actor: str = ""
    """Who asks, where a call does not say."""

    def suspend(
        self, reference: str, reason: str = "", *, by: Caller | None = None, if_match: Versions = None
    ) -> JobSet:
        """Ask for a set to be stopped and kept; one that is suspended already is left alone.

        Raises:
            NotFound: There is no such set.
            Conflict: It has ended, or is being deleted.
        """
        with audited(self.store, by, Act.SUSPEND, Subject.JOB_SET, reference):
            return in_order(lambda: self._steer(RequestKind.HOLD, reference, reason, by, if_match), if_match)

    def resume(
        self, reference: str, reason: str = "", *, by: Caller | None = None, if_match: Versions = None
    ) -> JobSet:
        """Ask to resume a suspended set; one that is not suspended is left alone.

        Raises:
            NotFound: There is no such set.
            Conflict: It has ended, or is being deleted.
        """
        with audited(self.store, by, Act.RESUME, Subject.JOB_SET, reference):
            return in_order(lambda: self._steer(RequestKind.RELEASE, reference, reason, by, if_match), if_match)

    def restart(
        self,
        reference: str,
        *,
        group: str | None = None,
        index: int | None = None,
        reason: str = "",
        by: Caller | None = None,
        if_match: Versions = None,
    ) -> JobSet:
        """Ask for a restart of a set, one of its replicated jobs, or one job of that; counts against no limit.

        Raises:
            InvalidRequest: An index without a replicated job.
            NotFound: There is no such set, replicated job or job.
            Conflict: The set has ended, is suspended or is being deleted.
        """
        with audited(self.store, by, Act.RESTART, Subject.JOB_SET, reference):
            if index is not None and group is None:
                problem = Problem("index", "needs a replicated job", hint="add replicated_job")
                raise InvalidRequest(problems=[problem])
            wanted = {"group": group, "index": index}
            payload = json.dumps({name: value for name, value in wanted.items() if value is not None})

            def ask() -> JobSet:
                found = self._find(reference, if_match)
                self._check_alive(found, "restarted")
                self._check_restart(found, group, index)
                return self._ask(RequestKind.RESTART, found, reason, by, payload)

            return in_order(ask, if_match)

    def delete(
        self, reference: str, reason: str = "", *, by: Caller | None = None, if_match: Versions = None
    ) -> JobSet:
        """Ask for a set to be deleted; one that is being deleted is left alone.

        It goes as soon as its programs have stopped; its jobs stay as history.

        Raises:
            NotFound: There is no such set.
        """
        with audited(self.store, by, Act.DELETE, Subject.JOB_SET, reference):

            def ask() -> JobSet:
                found = self._find_whatever_is_left(reference, if_match)
                return found if found.deleting else self._ask(RequestKind.DELETE, found, reason, by)

            return in_order(ask, if_match)

    def _find(self, reference: str, if_match: Versions) -> JobSet:
        found = as_accepted(self.store.asked_of(JobSet, reference))
        require_match(found, if_match)
        return found

    def _find_whatever_is_left(self, reference: str, if_match: Versions) -> JobSet:
        """Find a set to delete it, which is the way to be rid of a damaged one."""
        try:
            found = self._find(reference, if_match)
            set_spec_of(found)
        except Internal:
            found = self.store.left_of(JobSet, reference)
            require_match(found, if_match)
            return evolve(found, spec=dump_set_spec(JobSetSpec(name=found.name)))
        return found

    def _steer(self, kind: RequestKind, reference: str, reason: str, by: Caller | None, if_match: Versions) -> JobSet:
        found = self._find(reference, if_match)
        suspend = kind is RequestKind.HOLD
        self._check_alive(found, "suspended" if suspend else "resumed")
        change = suspending(found, suspend=suspend)
        return found if change is None else self._ask(kind, found, reason, by, change)

    @staticmethod
    def _check_alive(job_set: JobSet, verb: str) -> None:
        if job_set.deleting:
            msg = f"job set {job_set.name!r} is being deleted: it cannot be {verb}"
            raise Conflict(msg)
        if job_set.state.terminal:
            msg = f"job set {job_set.name!r} is {job_set.state.terminal} already: it cannot be {verb}"
            raise Conflict(msg, hint="delete it and create it again")

    @staticmethod
    def _check_restart(job_set: JobSet, group: str | None, index: int | None) -> None:
        """Try a restart on what is stored; what comes of it is the controller's to store.

        Raises:
            NotFound: There is no such replicated job or job.
        """
        spec, state, now = set_spec_of(job_set), job_set.state, 0.0
        if group is None:
            restart_set(spec, state, now)
        elif index is None:
            restart_group(spec, state, group)
        else:
            restart_job(spec, state, group, index)

    def _ask(self, kind: RequestKind, job_set: JobSet, reason: str, by: Caller | None, payload: str = "") -> JobSet:
        actor = self.actor if by is None else by.actor
        request = Request(kind, (job_set.id,), self.clock.now(), actor=actor, reason=reason, payload=payload)
        self.store.append(request, by=by, version=job_set.version)
        return accepted(job_set, request)
