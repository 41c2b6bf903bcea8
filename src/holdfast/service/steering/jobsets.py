"""The rules for suspending, resuming, restarting and deleting job sets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_change, set_spec_of, suspending
from holdfast.domain.audit import Act
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.manual import restart_group, restart_job, restart_set
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, InvalidRequest, Problem
from holdfast.ports.requests import RequestKind
from holdfast.service.steering.control import OwnerSteering

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.ports.requests import Request
    from holdfast.service.steering.control import Control

_VERBS = {Act.SUSPEND: "suspended", Act.RESUME: "resumed", Act.RESTART: "restarted"}


class JobSetSteering(OwnerSteering[JobSet]):
    """Job sets are suspended, resumed, restarted as a whole or in part, and deleted."""

    kind = JobSet

    def read(self, row: JobSet) -> JobSetSpec:
        """Read a job set's specification."""
        return set_spec_of(row)

    def nothing(self, name: str) -> JobSetSpec:
        """Return the specification that stands in for a damaged one."""
        return JobSetSpec(name=name)

    def done(self, row: JobSet, request: Request) -> JobSet:
        """Apply a request to a job set as the controller does, as far as the manifest changes."""
        if row.deleting:
            return row
        if request.kind is RequestKind.DELETE:
            return evolve(row, deleting=True)
        steered = request.kind in {RequestKind.HOLD, RequestKind.RELEASE}
        if request.kind is not RequestKind.UPDATE and (not steered or row.state.terminal):
            return row
        change = load_change(request.payload)
        return evolve(row, manifest=change.manifest, spec=change.spec, generation=row.generation + 1)

    def accepted(self, row: JobSet, request: Request) -> JobSet:
        """Return a set as it will be once the request is carried out."""
        return evolve(self.done(row, request), version=row.version + 1)

    def allow(self, control: Control[JobSet], act: Act, row: JobSet, what: Mapping[str, Any]) -> str | None:
        """Check that a set may be suspended, resumed, restarted or deleted; ``group`` and ``index`` name a part."""
        del control
        if act is Act.DELETE:
            return None if row.deleting else ""
        group, index = what.get("group"), what.get("index")
        if index is not None and group is None:
            problem = Problem("index", "needs a replicated job", hint="add replicated_job")
            raise InvalidRequest(problems=[problem])
        if row.deleting:
            msg = f"job set {row.name!r} is being deleted: it cannot be {_VERBS[act]}"
            raise Conflict(msg)
        if row.state.terminal:
            msg = f"job set {row.name!r} is {row.state.terminal} already: it cannot be {_VERBS[act]}"
            raise Conflict(msg, hint="delete it and create it again")
        if act is not Act.RESTART:
            return suspending(row, suspend=act is Act.SUSPEND)
        _try_restart(row, group, index)
        selection = {"group": group, "index": index}
        return json.dumps({name: value for name, value in selection.items() if value is not None})


JOB_SETS = JobSetSteering()


def _try_restart(row: JobSet, group: str | None, index: int | None) -> None:
    """Try a restart on the stored state. The controller stores the real one.

    Raises:
        NotFound: There is no such replicated job or job.
    """
    spec, state, now = set_spec_of(row), row.state, 0.0
    if group is None:
        restart_set(spec, state, now)
    elif index is None:
        restart_group(spec, state, group)
    else:
        restart_job(spec, state, group, index)
