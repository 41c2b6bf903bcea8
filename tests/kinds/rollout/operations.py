"""What can be done with rollouts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from holdfast.compiled.codec import SetChange, dump_change, dump_spec, load_spec
from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act
from holdfast.errors import NotFound
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter, Submission
from holdfast.ports.workloads import EVERY
from holdfast.service.access.asking import asks
from holdfast.service.manifests.reading import one_document
from holdfast.service.operations.steering import Steers
from holdfast.service.refusals import audited
from tests.kinds.rollout.manifest import read_rollout
from tests.kinds.rollout.model import Rollout, RolloutSpec
from tests.kinds.rollout.steering import STEERING
from tests.kinds.rollout.words import ROLLOUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.ports.workloads import Unreadable, WorkloadFilter
    from holdfast.service.manifests.text import Text


class Page(NamedTuple):
    rows: Sequence[Rollout]
    next_after: str | None
    unreadable: Sequence[Unreadable]


class Rollouts(Steers[Rollout], frozen=True):
    rules = STEERING

    @asks(Right.WATCH, ROLLOUT.subject)
    def page(self, caller: Caller, where: WorkloadFilter = EVERY, *, after: str = "", limit: int = 1000) -> Page:
        """List rollouts by name."""
        told: list[Unreadable] = []
        seen = self.backend.seeing(caller).workloads(Rollout, where)
        found = self.backend.store.workloads(Rollout, seen, after=after, limit=limit + 1, told=told.append)
        return Page(found[:limit], found[limit - 1].name if len(found) > limit else None, told)

    @asks(Right.WATCH, ROLLOUT.subject)
    def get(self, caller: Caller, ref: str) -> Rollout:
        """Read a rollout, as it is with all that was asked of it."""
        return STEERING.as_accepted(self.backend.store.asked_of(Rollout, self._named(caller, Right.WATCH, ref)))

    @asks(Right.WATCH, ROLLOUT.subject)
    def jobs(self, caller: Caller, row: Rollout) -> Sequence[Job]:
        """List the jobs of a rollout."""
        return self.backend.seeing(caller).jobs(self.backend.store.jobs(JobFilter(job_set=row.id)))

    @asks(Right.SUBMIT, ROLLOUT.subject)
    def put(self, caller: Caller, body: Text, *, create: bool | None = None) -> tuple[Rollout, str]:
        """Create a rollout, or change the one of its name; returns it and what became of it.

        Raises:
            InvalidManifest: It is not valid; with every problem found.
            NotFound: There is none, and ``create`` says that there must be.
        """
        document = one_document(body)
        name, spec = read_rollout(document.value)
        with audited(self.backend.store, caller, Act.CREATE if create else Act.APPLY, ROLLOUT.subject, name):
            manifest = json.dumps(document.value, sort_keys=True)
            try:
                row = self.get(caller, name) if not create else None
            except NotFound:
                if create is False:
                    raise
                row = None
            return (
                self._created(caller, name, spec, manifest)
                if row is None
                else self._changed(caller, row, spec, manifest)
            )

    def _created(self, caller: Caller, name: str, spec: RolloutSpec, manifest: str) -> tuple[Rollout, str]:
        row = Rollout(
            id=self.backend.ids.new(),
            name=name,
            spec=dump_spec(spec),
            manifest=manifest,
            created_at=caller.at,
            submitted_by=caller.principal.name,
            submitter_uid=caller.principal.uid,
            queue=load_spec(spec.template).queue,
        )
        self.backend.store.submit(Submission([], owner=row, by=caller))
        return row, "created"

    def _changed(self, caller: Caller, row: Rollout, spec: RolloutSpec, manifest: str) -> tuple[Rollout, str]:
        self.backend.seeing(caller).require_own(row)
        if (changed := dump_spec(spec)) == row.spec:
            return row, "unchanged"
        payload = dump_change(SetChange(manifest, changed))
        asked = self._control().send(RequestKind.UPDATE, (row.id,), by=caller, payload=payload, version=row.version)
        return STEERING.done(row, asked), "updated"
