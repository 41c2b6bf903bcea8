"""The people of a world who run arrays: they submit, hold, rerun, cancel and delete them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec, load_array
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, Axis, Indexes
from holdfast.domain.workloads.array.rerun import TaskChoice
from holdfast.errors import Conflict, NotFound, Refused
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Submission
from holdfast.service.reruns import rerun
from holdfast.service.submit import Submitter
from tools.simulate.chance import Chance
from tools.simulate.work import random_spec

if TYPE_CHECKING:
    from tools.simulate.invariants.arrays import ArrayChecks
    from tools.simulate.scene import Scene

_ARRAYS = (1, 3)
_TASKS = (1, 2, 7, 20)


class ArrayPeople:
    """Everybody who has to do with arrays."""

    def __init__(self, scene: Scene, chance: Chance, checks: ArrayChecks) -> None:
        """Begin without requests.

        Args:
            scene: Where they are.
            chance: Decides who asks for what.
            checks: Told of accepted arrays.
        """
        self._scene = scene
        self._chance = chance
        self._checks = checks
        self._submitted = 0
        self._later = Chance(str(chance.getstate()))  # dice of their own, so that nothing else falls differently
        self._numbered = 0

    def new(self) -> str:
        """Give out an id."""
        self._numbered += 1
        return f"rerun{self._numbered:03}"

    def plan(self, until: float) -> None:
        """Put on the agenda what will be asked for until then."""
        chance, now = self._chance, self._scene.agenda.now()
        for _ in range(chance.randint(*_ARRAYS)):
            self._scene.agenda.at(chance.moment(now, now + (until - now) * 0.7), self._submit)
        for _ in range(chance.randint(0, 2)):
            kind = chance.choice((RequestKind.CANCEL, RequestKind.DELETE))
            self._scene.agenda.at(chance.moment(now, until), self._scene.willing(partial(self._ask, kind)))
        for _ in range(self._later.randint(1, 4)):
            moment = self._later.moment(now + (until - now) * 0.3, until)
            self._scene.agenda.at(moment, self._scene.willing(self._rerun))
        for _ in range(self._later.randint(0, 2)):
            self._scene.agenda.at(self._later.moment(now, until), self._scene.willing(self._hold))

    def _hold(self) -> None:
        """Hold an array, and release it later."""
        going_on = [row for row in self._checks.rows.values() if not row.ended and not row.state.held]
        if going_on:
            row = self._later.choice(going_on)
            self._steer(RequestKind.HOLD, row)
            later = self._scene.willing(partial(self._steer, RequestKind.RELEASE, row))
            self._scene.agenda.after(self._later.moment(0.5, 30.0), later)

    def _rerun(self) -> None:
        """Have tasks of some array run again, if any can."""
        if not self._checks.rows:
            return
        row = self._later.choice(list(self._checks.rows.values()))
        wanted = TaskChoice(*self._later.choice(((True, False), (False, True), (True, True))))
        try:
            found = rerun(Submitter(self._scene.store(), self._scene.agenda, self), row.id, wanted, _named)
        except (NotFound, Conflict, Refused) as error:
            self._scene.trace.say(f"asked to rerun {row.name}: {error}")
        else:
            self._checks.accept(found.array, load_array(found.array.spec))
            self._scene.trace.say(f"submitted {found.array.name} of {found.spec.total} tasks of {row.name}")

    def _submit(self) -> None:
        self._submitted += 1
        name, chance = f"array{self._submitted}", self._chance
        total = chance.choice(_TASKS)
        job = evolve(random_spec(chance, self._submitted), name=name, gang=chance.choice((1, 1, 2)))
        spec = ArraySpec(
            job,
            axes=(Axis("n", tuple(map(str, range(total)))),) if chance.happens(0.5) else (),
            indexes=(Indexes(3, 3 + 2 * (total - 1), 2),),
            max_running=chance.choice((None, 1, 2, 4)),
            max_failures=chance.choice((None, None, 0, 2)),
            at_least=chance.choice((None, None, 1, total)),
        )
        now, queue = self._scene.agenda.now(), spec.job.queue
        row = Array(id=f"id-{name}", name=name, spec=dump_spec(spec), created_at=now, queue=queue)

        def submit() -> None:
            self._scene.store().submit(Submission([], owner=row))
            self._checks.accept(row, spec)
            self._scene.trace.say(f"submitted {name} of {total} tasks")

        self._scene.willing(submit)()

    def _ask(self, kind: RequestKind) -> None:
        if self._checks.rows:
            self._steer(kind, self._chance.choice(list(self._checks.rows.values())))

    def _steer(self, kind: RequestKind, row: Array) -> None:
        self._scene.trace.say(f"asked to {kind} {row.name}")
        if kind is RequestKind.RELEASE:
            self._checks.released(row.id)
        self._scene.store().append(Request(kind, (row.id,), self._scene.agenda.now(), actor="ann"))


def _named(spec: ArraySpec, name: str) -> ArraySpec:
    return evolve(spec, job=evolve(spec.job, name=name))
