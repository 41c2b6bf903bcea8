"""The people of a world: they submit, cancel, hold and release jobs, and operators change the rules meanwhile.

Whoever is refused because the disk is full tries again later.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.compiled.codec import dump_spec
from holdfast.domain.job import Ceiling, Job
from holdfast.domain.record import evolve
from holdfast.errors import Unavailable
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Submission
from tools.simulate.invariants.record import UNLESS_STARTED
from tools.simulate.policies import (
    FIRST_UNTRIED,
    POLICIES,
    QUEUES,
    UNTRIED_EVERY,
    kept_off_tried,
    network_category,
    random_policy,
    random_queue,
    random_settings,
)
from tools.simulate.watched import watched_specs
from tools.simulate.work import random_spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.job import Amounts
    from holdfast.domain.notifier import Notify
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.store import Store
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.chance import Chance
    from tools.simulate.disk import Disk
    from tools.simulate.invariants.caps import Caps
    from tools.simulate.invariants.record import Record
    from tools.simulate.trace import FaultTrace

_COME_BACK_S = 2.0


class People:
    """Everybody who uses the store from outside the controller."""

    def __init__(  # noqa: PLR0913 - the world's parts, each by name
        self,
        store: Callable[[], Store],
        *,
        agenda: Agenda,
        chance: Chance,
        trace: FaultTrace,
        disk: Disk,
        record: Record,
        caps: Caps,
        hint: Callable[[], None],
    ) -> None:
        """Begin without requests.

        Args:
            store: Returns the store that is open now.
            agenda: The world's time.
            chance: Decides who asks for what.
            trace: The world's trace.
            disk: Refuses writes when it is full.
            record: Told of accepted jobs.
            caps: Told of global caps.
            hint: Called when there may be a new request.
        """
        self._store = store
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._disk = disk
        self._record = record
        self._caps = caps
        self._hint = hint
        self.submitted = 0
        self.notify: Callable[[], tuple[Notify, ...]] = lambda: ()
        """Decides who is told of the next job."""
        self.asks: Callable[[JobSpec], JobSpec] = lambda spec: spec
        """Decides what else the next job asks for."""
        self.resources: Amounts = ()
        """What the whole cluster has by name."""
        self._at_peace = False

    def set_up(self) -> None:
        """Write the first policies, queues, categories and settings."""
        store, chance = self._store(), self._chance
        for name in POLICIES:
            store.put_entry(random_policy(chance, name))
        for name in QUEUES:
            store.put_entry(random_queue(chance, name))
        store.put_entry(network_category())
        self._set(random_settings(chance), chance.choice((None, *POLICIES)))

    def plan(self, jobs: int, until: float, seed: int) -> None:
        """Put on the agenda what will be asked for until then."""
        chance, now = self._chance, self._agenda.now()
        if seed % UNTRIED_EVERY == FIRST_UNTRIED:
            others = self.asks
            self.asks = lambda spec: kept_off_tried(others(spec))
        while jobs:
            batch = min(jobs, chance.randint(1, 5))
            jobs -= batch
            self._agenda.at(chance.moment(now, now + (until - now) * 0.7), partial(self._submit, batch))
        actions = (self._cancel, self._hold, self._release, self._release, self._edit, self._edit_queue, self._settings)
        for _ in range(chance.randint(0, 14)):
            self._agenda.at(chance.moment(now, until), self.willing(chance.choice(actions)))
        for number, spec in enumerate(watched_specs(seed)):
            self._agenda.after(number * 2.0, partial(self._submit_watched, spec))

    def _submit_watched(self, spec: JobSpec) -> None:
        job = self._as_job(f"id-{spec.name}", spec)

        def submit() -> None:
            self._store().submit(Submission([job]))
            self._record.accept(self._store().jobs_by_id([job.id]))
            self._trace.say(f"submitted {job.id}")

        self.willing(submit)()

    def willing(self, action: Callable[[], None]) -> Callable[[], None]:
        """Wrap an action so that it is tried again when the disk is full."""

        def act() -> None:
            if self._at_peace:
                return
            try:
                self._disk.require_space()
            except Unavailable:
                self._agenda.after(_COME_BACK_S, act)
                return
            action()
            if self._chance.happens(0.7):
                self._hint()

        return act

    def _submit(self, count: int) -> None:
        jobs = [self._job() for _ in range(count)]

        def submit() -> None:
            submission = Submission(jobs, idempotency_key=jobs[0].id, fingerprint=jobs[0].id)
            for _ in range(2 if self._chance.happens(0.1) else 1):
                self._store().submit(submission)
            self._record.accept(self._store().jobs_by_id([job.id for job in jobs]))
            self._trace.say(f"submitted {jobs[0].id} to {jobs[-1].id}")

        self.willing(submit)()

    def _job(self) -> Job:
        self.submitted += 1
        return self._as_job(f"job{self.submitted:03}", self.asks(random_spec(self._chance, self.submitted)))

    def _as_job(self, job_id: str, spec: JobSpec) -> Job:
        spec = evolve(spec, notify=self.notify())
        now = self._agenda.now()
        return Job(
            id=job_id,
            name=spec.name,
            queue=spec.queue,
            priority=spec.priority,
            submitted_at=now,
            spec=dump_spec(spec),
            request=spec.resources,
            gang=spec.gang,
            queued_at=now,
            updated_at=now,
            kind=spec.kind,
        )

    def ask(self, kind: RequestKind, job_id: str) -> None:
        """Append a request about one job."""
        if kind is RequestKind.HOLD:
            self._record.held.add(job_id)
        if kind is RequestKind.RELEASE:
            self._record.released.add(job_id)
        self._trace.say(f"asked to {kind} {job_id}")
        reason = UNLESS_STARTED if kind is RequestKind.CANCEL_UNLESS_STARTED else "as you like it"
        self._store().append(Request(kind, (job_id,), self._agenda.now(), actor="ann", reason=reason))

    def _cancel(self) -> None:
        self._ask_about_any(self._chance.choice((RequestKind.CANCEL, RequestKind.CANCEL_UNLESS_STARTED)))

    def _hold(self) -> None:
        self._ask_about_any(RequestKind.HOLD)

    def _release(self) -> None:
        self._ask_about_any(RequestKind.RELEASE)

    def _ask_about_any(self, kind: RequestKind) -> None:
        if self._record.jobs:
            self.ask(kind, self._chance.choice(list(self._record.jobs)))

    def _edit(self) -> None:
        policy = random_policy(self._chance, self._chance.choice(POLICIES))
        self._trace.say(f"policy {policy.name} is edited")
        self._store().put_entry(policy)

    def _edit_queue(self) -> None:
        queue = random_queue(self._chance, self._chance.choice(QUEUES))
        queue = evolve(queue, paused=self._chance.happens(0.3))
        self._trace.say(f"queue {queue.name} is edited{' and paused' if queue.paused else ''}")
        self._store().put_entry(queue)

    def _settings(self) -> None:
        self._set(random_settings(self._chance), self._chance.choice((None, *POLICIES)))

    def _set(self, settings: RetrySettings, default_policy: str | None) -> None:
        self._trace.say(f"global cap becomes {settings.global_max_retries}")
        self._store().put_settings(evolve(settings, resources=self.resources), default_policy)
        self._caps.change(self._agenda.now(), settings.global_max_retries)

    def make_peace(self) -> None:
        """Lift every pause and limit, so that nothing but the jobs themselves keeps them from ending."""
        self._at_peace = True
        for queue in list(self._store().catalogue().queues.values()):
            self._store().put_entry(evolve(queue, paused=False, max_running=Ceiling(), max_running_jobs=None))
        self._hint()
