"""The people of a world who run job sets, and Jobs of their own: they submit, stop, change, restart and delete them.

Whoever is refused because the disk is full tries again later.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import SetChange, dump_change, dump_set_spec, load_set_spec, suspending
from holdfast.dialects.jobset.loading import dump_set, plain_job_spec
from holdfast.dialects.jobset.reading import JobManifest
from holdfast.domain.record import evolve
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Submission
from holdfast.service.admission.dependencies import NOTHING, DependencyResolver, SubmissionItem
from holdfast.service.admission.records import new_job
from holdfast.service.jobsets.sets import jobs_of
from holdfast.service.steering.jobsets import JOB_SETS
from tools.cases.kube_reading import read_kube
from tools.simulate.manifests import random_batch_job, random_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.service.admission.dependencies import Resolved
    from tools.simulate.chance import Chance
    from tools.simulate.invariants.setrecord import SetRecord
    from tools.simulate.scene import Scene

_SETS = (1, 4)
_BATCH_JOBS = (0, 4)
_WAITS = 0.3
_CONDITIONS = (Condition.OK, Condition.OK, Condition.ENDED, Condition.FAILED)
_UNMET = (*(OnUnmet.CANCEL,) * 6, OnUnmet.RUN, OnUnmet.HOLD)


class SetPeople:
    """Everybody who has to do with job sets."""

    def __init__(self, scene: Scene, chance: Chance, waits: Chance, record: SetRecord) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides who asks for what.
            waits: Decides what waits for what.
            record: Told of accepted sets and jobs.
        """
        self._scene = scene
        self._chance = chance
        self._waits = waits
        self._record = record
        self._submitted = 0
        self.asks: Callable[[dict[str, Any]], None] = lambda _: None
        """Adds to a manifest what else its pods ask for."""
        self._actions = (self._suspend, self._resume, self._resume, self._restart, self._restart, self._delete)

    def plan(self, until: float) -> None:
        """Put on the agenda what will be asked for until then."""
        chance, now = self._chance, self._scene.agenda.now()
        for _ in range(chance.randint(*_SETS)):
            self._scene.agenda.at(chance.moment(now, now + (until - now) * 0.7), self._submit_set)
        for _ in range(chance.randint(*_BATCH_JOBS)):
            self._scene.agenda.at(chance.moment(now, now + (until - now) * 0.7), self._submit_job)
        for _ in range(chance.randint(0, 8)):
            action = chance.choice((*self._actions, self._resize))
            self._scene.agenda.at(chance.moment(now, until), self._scene.willing(action))

    def make_peace(self) -> None:
        """Resume what is suspended, most of it."""
        for row in list(self._record.rows.values()):
            if not row.deleting and self._chance.happens(0.8):
                self._steer(RequestKind.RELEASE, row)

    def _name(self, kind: str) -> str:
        self._submitted += 1
        return f"{kind}{self._submitted}"

    def _submit_set(self) -> None:
        name, now = self._name("set"), self._scene.agenda.now()
        document = random_set(self._chance, name)
        self.asks(document)
        spec, text = _read(document), dump_set(document)
        row = JobSet(
            id=f"id-{name}",
            name=name,
            created_at=now,
            manifest=text,
            spec=dump_set_spec(spec),
            updated_at=now,
            queue=spec.queue_name,
        )
        jobs = [job for job, _ in jobs_of(row, spec, "id-{}".format)]

        after = self._after()

        def submit() -> None:
            found = self._found(evolve(spec, after=after))
            waiting = evolve(row, spec=dump_set_spec(evolve(spec, after=found.after)), state=JobSetState(met=found.met))
            self._scene.store().submit(Submission(jobs, owner=waiting))
            self._record.accept_set(waiting, self._scene.store().jobs_by_id([job.id for job in jobs]))
            self._scene.trace.say(f"submitted {name} of {len(jobs)} jobs: {row.manifest}, after {found.after}")

        self._scene.willing(submit)()

    def _submit_job(self) -> None:
        name = self._name("pods")
        document = random_batch_job(self._chance, name)
        self.asks(document)
        manifest = read_kube(document).manifest
        assert isinstance(manifest, JobManifest)  # noqa: S101 - what was drawn is a Job
        spec, now, after = plain_job_spec(manifest), self._scene.agenda.now(), self._after()

        def submit() -> None:
            found = self._found(evolve(spec, after=after))
            job = found.applied(new_job(evolve(spec, after=found.after), f"id-{name}", now))
            self._scene.store().submit(Submission([job]))
            self._record.accept_job(self._scene.store().jobs_by_id([job.id])[0])
            self._scene.trace.say(f"submitted {name}: {json.dumps(document['spec'])}, after {found.after}")

        self._scene.willing(submit)()

    def _after(self) -> tuple[Dependency, ...]:
        """Draw what a set or a Job waits for, of what is there."""
        chance, kept = self._waits, self._record
        jobs = [(job.id, DependencyKind.JOB) for job in kept.record.jobs.values() if job.of_set is None]
        known = [*jobs, *((row.id, DependencyKind.JOB_SET) for row in kept.rows.values() if not row.deleting)]
        if not known or not chance.happens(_WAITS):
            return ()
        drawn = [chance.choice(known) for _ in range(chance.choice((1, 1, 2)))]
        return tuple(
            Dependency(name, chance.choice(_CONDITIONS), chance.choice(_UNMET), target=target) for name, target in drawn
        )

    def _found(self, spec: JobSetSpec | JobSpec) -> Resolved:
        """Find what something waits for; it waits for nothing where that is gone by then."""
        resolver = DependencyResolver(self._scene.store(), [SubmissionItem(spec)])
        return NOTHING if resolver.problems() else resolver.resolved(0, {})

    def _any(self) -> JobSet | None:
        return self._chance.choice(list(self._record.rows.values())) if self._record.rows else None

    def _ask(self, kind: RequestKind, row: JobSet | None, payload: str = "") -> None:
        if row is not None:
            self._scene.trace.say(f"asked to {kind} {row.name} {payload}")
            self._scene.store().append(Request(kind, (row.id,), self._scene.agenda.now(), actor="ann", payload=payload))

    def _steer(self, kind: RequestKind, row: JobSet | None) -> None:
        if row is None:
            return
        there = JOB_SETS.as_accepted(self._scene.store().asked_of(JobSet, row.id))
        change = suspending(there, suspend=kind is RequestKind.HOLD)
        if change is not None:
            if kind is RequestKind.RELEASE:
                self._record.record.released.add(row.id)
            self._ask(kind, row, change)

    def _suspend(self) -> None:
        self._steer(RequestKind.HOLD, self._any())

    def _resume(self) -> None:
        self._steer(RequestKind.RELEASE, self._any())

    def _delete(self) -> None:
        if self._chance.happens(0.5):
            self._ask(RequestKind.DELETE, self._any())

    def _restart(self) -> None:
        row = self._any()
        if row is None:
            return
        group = self._chance.choice(load_set_spec(row.spec).replicated_jobs)
        index = self._chance.randint(0, max(0, group.replicas - 1))
        wanted = self._chance.choice(({}, {"group": group.name}, {"group": group.name, "index": index}))
        self._ask(RequestKind.RESTART, row, json.dumps(wanted) if wanted else "")

    def _resize(self) -> None:
        row = self._any()
        if row is None:
            return
        document = json.loads(row.manifest)
        size = self._chance.randint(1, 4)
        for group in document["spec"].get("jobs") or document["spec"]["replicatedJobs"]:
            job: dict[str, Any] = group["template"]["spec"] if "template" in group else group
            if job.get("completionMode", "Indexed") == "Indexed" and job["parallelism"] == job["completions"]:
                job["parallelism"] = job["completions"] = max(size, job.get("maxFailedIndexes", 0))
        spec = evolve(_read(document), after=load_set_spec(row.spec).after)
        if not spec.suspend:
            self._record.record.released.add(row.id)
        change = SetChange(dump_set(document), dump_set_spec(spec))
        self._ask(RequestKind.UPDATE, row, dump_change(change))


def _read(document: Mapping[str, Any]) -> JobSetSpec:
    spec = read_kube(document).manifest
    assert isinstance(spec, JobSetSpec)  # noqa: S101 - what was drawn is a set
    return spec
