"""The people of a world who have work wait for other work: what is submitted together, and what is there already."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_array
from holdfast.domain.job import Job, JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, Indexes
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet
from holdfast.ports.requests import Request, RequestKind
from holdfast.service.submit import Submitter, WrittenJob
from tools.simulate.chance import Chance
from tools.simulate.work import random_spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.simulate.invariants.arrays import ArrayChecks
    from tools.simulate.scene import Scene

DEPENDENTS_EVERY, FIRST_WITH_DEPENDENTS = 5, 2
"""One seed of this many has work that waits for other work, from this one on."""
_TIMES = (1, 4)
_TOGETHER = (2, 7)
_TASKS = 4
_KEEPS = 0.7
"""The share of the arrays that may be held for what can never happen; the others do what they did before they could."""
_UNMET = (*(OnUnmet.CANCEL,) * 6, OnUnmet.RUN, OnUnmet.HOLD)


class DependentPeople:
    """Everybody whose work waits for other work; also the ids it gets."""

    def __init__(self, scene: Scene, chance: Chance, arrays: ArrayChecks) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides who asks for what.
            arrays: Told of accepted arrays, as its record is of accepted jobs.
        """
        self._scene = scene
        self._chance = chance
        self._record = arrays.record
        self._arrays = arrays
        self._holds = Chance(f"{chance.getstate()}/holds")  # dice of their own, so that nothing else falls differently
        self._named = self._numbered = 0

    def new(self) -> str:
        """Give out an id."""
        self._numbered += 1
        return f"dep{self._numbered:03}"

    def plan(self, seed: int, until: float) -> None:
        """Put on the agenda what will be asked for until then, if this world has such people."""
        if seed % DEPENDENTS_EVERY != FIRST_WITH_DEPENDENTS:
            return
        chance, now = self._chance, self._scene.agenda.now()
        for _ in range(chance.randint(*_TIMES)):
            self._scene.agenda.at(chance.moment(now, now + (until - now) * 0.8), self._scene.willing(self._submit))
        for _ in range(chance.randint(0, 3)):
            self._scene.agenda.at(chance.moment(now, until), self._scene.willing(self._hold))
        for _ in range(self._holds.randint(1, 4)):
            moment = self._holds.moment(now + (until - now) * 0.3, until)
            self._scene.agenda.at(moment, self._scene.willing(self._release_array))

    def _release_array(self) -> None:
        """Release an array that is held, perhaps because of what it waits for."""
        held = [row.id for row in self._arrays.rows.values() if row.state.held and not row.ended]
        if held:
            array_id = self._holds.choice(held)
            self._arrays.released(array_id)
            self._ask(RequestKind.RELEASE, array_id)

    def _hold(self) -> None:
        """Hold a job that waits, and release it later."""
        waiting = [job.id for job in self._record.jobs.values() if job.state is JobState.WAITING and job.of_set is None]
        if waiting:
            job_id = self._chance.choice(waiting)
            self._ask(RequestKind.HOLD, job_id)
            later = self._scene.willing(partial(self._ask, RequestKind.RELEASE, job_id))
            self._scene.agenda.after(self._chance.moment(0.5, 20.0), later)

    def _ask(self, kind: RequestKind, job_id: str) -> None:
        asked = self._record.released if kind is RequestKind.RELEASE else self._record.held
        asked.add(job_id)  # it may run by the time it is held
        self._scene.trace.say(f"asked to {kind} {job_id}, which waits for others")
        self._scene.store().append(Request(kind, (job_id,), self._scene.agenda.now(), actor="ann"))

    def _submit(self) -> None:
        chance = self._chance
        items = [self._item() for _ in range(chance.randint(*_TOGETHER))]
        written = [self._waiting(item, items[:place]) for place, item in enumerate(items)]
        chance.shuffle(written)
        outcomes = Submitter(self._scene.store(), self._scene.agenda, self).submit_many(written, atomic=False)
        jobs = [one.created.id for one in outcomes if isinstance(one.created, Job)]
        if jobs:
            self._record.accept(self._scene.store().jobs_by_id(jobs))
        for one in outcomes:
            if isinstance(one.created, Array):
                self._arrays.accept(one.created, load_array(one.created.spec))
            self._scene.trace.say(
                f"submitted {one.name} as {one.created and one.created.id}, which may wait for others"
            )

    def _item(self) -> WrittenJob:
        chance = self._chance
        self._named += 1
        spec = evolve(random_spec(chance, self._named), name=f"dep-{self._named}")
        if chance.happens(0.7):
            return WrittenJob(spec)
        spec = evolve(spec, gang=1)
        most, least = chance.choice((None, 2)), chance.choice((None, None, 1))
        array = ArraySpec(spec, (Indexes(0, _TASKS - 1),), max_running=most, at_least=least)
        return WrittenJob(spec, array=array, manifest="{}")

    def _waiting(self, item: WrittenJob, before: Sequence[WrittenJob]) -> WrittenJob:
        """Have an item wait for some of those before it, and for some that were there already."""
        chance = self._chance
        after = []
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            if before and chance.happens(0.7):
                other = chance.choice(list(before))
                after.append(self._one(item, other.spec.name, None if other.array is None else DependencyKind.ARRAY))
            else:
                after += self._there_already(item)
        spec = evolve(item.spec, after=tuple(after))
        return evolve(item, spec=spec, array=None if item.array is None else evolve(item.array, job=spec))

    def _there_already(self, item: WrittenJob) -> list[Dependency]:
        chance = self._chance
        jobs = [job.id for job in self._record.jobs.values() if job.of_set is None]
        known = [(one, None) for one in jobs] + [(row.id, DependencyKind.ARRAY) for row in self._arrays.rows.values()]
        return [self._one(item, *chance.choice(known))] if known else []

    def _one(self, item: WrittenJob, name: str, target: str | None) -> Dependency:
        chance = self._chance
        on_unmet = chance.choice(_UNMET)
        keeps = item.array is None or (on_unmet is OnUnmet.HOLD and self._holds.happens(_KEEPS))
        if target is None:
            if on_unmet is OnUnmet.HOLD and not keeps:
                on_unmet = OnUnmet.CANCEL
            return Dependency(name, chance.choice(list(Condition)), on_unmet, target=DependencyKind.JOB)
        known = next((row for row in self._arrays.rows.values() if row.id == name), None)
        total = _TASKS if known is None else self._arrays.total(known.id, from_0=True)
        if item.array is not None and total >= _TASKS and chance.happens(0.7):
            return Dependency(name, chance.choice(list(Condition)), on_unmet, by_index=True, target=target)
        conditions = [one for one in Condition if one is not Condition.STARTED]
        if on_unmet is OnUnmet.HOLD and not keeps:
            on_unmet = OnUnmet.RUN
        return Dependency(name, chance.choice(conditions), on_unmet, target=target)
