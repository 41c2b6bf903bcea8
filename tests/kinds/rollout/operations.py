"""What can be done with rollouts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.compiled.codec import SetChange, dump_change, dump_spec, load_spec
from holdfast.dialects.documents import Document
from holdfast.dialects.manifests import read_one
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act
from holdfast.errors import InvalidManifest, Problem
from holdfast.ports.entries import require_presence
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter, Submission
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.operations.steering import OwnerPage, Steers
from holdfast.service.refusals import audited
from tests.kinds.rollout.manifest import RolloutManifest
from tests.kinds.rollout.model import Rollout, RolloutSpec
from tests.kinds.rollout.steering import STEERING
from tests.kinds.rollout.words import ROLLOUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.ports.workloads import Unreadable, WorkloadFilter


class Put(NamedTuple):
    row: Rollout
    result: str
    warnings: Sequence[Problem]


class Rollouts(Steers[Rollout], frozen=True):
    rules = STEERING

    @asks(Right.WATCH, ROLLOUT.subject)
    def page(
        self, caller: Caller, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = 1000
    ) -> OwnerPage[Rollout]:
        """List rollouts by name."""
        told: list[Unreadable] = []
        seen = self.backend.seeing(caller).workloads(Rollout, where)
        found = self.backend.store.workloads(Rollout, seen, after=after, limit=limit + 1, unreadable=told.append)
        return OwnerPage.until(found[limit - 1].name if len(found) > limit else None, found[:limit], told)

    @asks(Right.WATCH, ROLLOUT.subject)
    def get(self, caller: Caller, ref: str) -> Rollout:
        """Read a rollout, as it is with all that was asked of it."""
        return STEERING.as_accepted(self.backend.store.asked_of(Rollout, self._named(caller, Right.WATCH, ref)))

    @asks(Right.WATCH, ROLLOUT.subject)
    def jobs(self, caller: Caller, row: Rollout) -> Sequence[Job]:
        """List the jobs of a rollout."""
        return self.backend.seeing(caller).jobs(self.backend.store.jobs(JobFilter(job_set=row.id)))

    @asks(Right.SUBMIT, ROLLOUT.subject)
    def put(
        self,
        caller: Caller,
        written: Document | Mapping[str, Any],
        *,
        create: bool | None = None,
        dry_run: bool = False,
    ) -> Put:
        """Create a rollout, or change the one of its name.

        Raises:
            InvalidManifest: It is not valid; with every problem found.
            NotFound: There is none, and ``create`` says that there must be.
            AlreadyExists: There is one, and ``create`` says that there must be none.
        """
        read = read_one(written)
        manifest: object = read.manifest
        if not isinstance(manifest, RolloutManifest):
            raise InvalidManifest(problems=read.problems)
        name, spec = manifest
        act = Act.CREATE if create else Act.APPLY
        with audited(self.backend.store, None if dry_run else caller, act, ROLLOUT.subject, name):
            row = next((one for one in self.page(caller).rows if one.name == name), None)
            require_presence(ROLLOUT.noun, name, existing=() if row is None else (name,), create=create)
            value = written.value if isinstance(written, Document) else written
            text = json.dumps(value, sort_keys=True)
            if row is None:
                row, result = self._new(caller, name, spec, text), "created"
                if not dry_run:
                    self.backend.store.submit(Submission([], owner=row, caller=caller))
            elif (changed := dump_spec(spec)) == row.spec:
                result = "unchanged"
            else:
                self.backend.seeing(caller).require_own(row)
                result = "updated"
                if not dry_run:
                    row = self._changed(caller, row, dump_change(SetChange(text, changed)))
            return Put(row, result, read.warnings)

    def _new(self, caller: Caller, name: str, spec: RolloutSpec, text: str) -> Rollout:
        return Rollout(
            id=self.backend.ids.new(),
            name=name,
            spec=dump_spec(spec),
            manifest=text,
            created_at=caller.at,
            submitted_by=caller.principal.name,
            submitter_uid=caller.principal.uid,
            queue=load_spec(spec.template).queue,
        )

    def _changed(self, caller: Caller, row: Rollout, change: str) -> Rollout:
        asked = self._control().send(RequestKind.UPDATE, (row.id,), caller=caller, payload=change, version=row.version)
        return STEERING.done(row, asked)


OPERATIONS = Rollouts
