"""Checks each commit against everything committed before."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.events.rebuild import rebuild
from holdfast.domain.failure import Cause, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL, AttemptStatus, Ending, RunStatus
from holdfast.domain.policy.builtin import CHECKPOINTED, INFRASTRUCTURE
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.decide import GLOBAL_LIMIT
from holdfast.domain.policy.model import Action
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.gang.policies import first_policies
from tools.simulate.invariants.record import UNLESS_STARTED
from tools.simulate.invariants.watching import WatchChecks
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.policy.model import Decision, RetryPolicy
    from holdfast.ports.store import Changes, Store
    from holdfast.service.explain import Explainer
    from tools.simulate.clocks import Readings
    from tools.simulate.invariants.caps import Caps
    from tools.simulate.invariants.record import Record
    from tools.simulate.machines.programs import Programs

_HELD_ENDINGS = {Ending.CANCELLED, Ending.NEVER_STARTED}
_PREEMPTED = frozenset({FailureCondition.PREEMPTED})
_AFTER_CANCEL = {JobState.RUNNING, JobState.CANCELLED, JobState.SUCCEEDED}


class CommitChecks:
    """What must hold of every commit."""

    def __init__(self, record: Record, programs: Programs, caps: Caps, clocks: Readings) -> None:
        """Remember what to compare with; ``clocks`` are the controllers'."""
        self._clocks = clocks
        self._record = record
        programs.on_end = WatchChecks(record).ended
        self._programs = programs
        self._caps = caps

    def check(self, changes: Changes, store: Store, explainer: Explainer) -> None:
        """Check one commit, then make it part of the record."""
        self._absorbing(changes)
        judged = self._judged(changes)
        self._record.decisions += len(judged)
        self._record.fold(changes)
        for job in changes.jobs.values():
            self._counters(job)
            self._job(job)
        for attempt in changes.attempts.values():
            self._attempt(attempt)
            self._taken(attempt.job_id)
        for attempt in judged:
            self._due(attempt)
            self._in_total_time(attempt)
            self._limits(attempt, store)
            self._explained(attempt, explainer)

    def _absorbing(self, changes: Changes) -> None:
        record = self._record
        for job in changes.jobs.values():
            before = record.jobs.get(job.id)
            if before is None:
                refuse("no-job-lost", f"job {job.id} is committed and was never accepted")
            if before.terminal and before != job:
                refuse("terminal-absorbs", f"job {job.id} was {before.state} and becomes {job.state}")
        for (job_id, number), attempt in changes.attempts.items():
            known = record.attempts[job_id].get(number)
            if known is not None and known.status in ATTEMPT_TERMINAL and known != attempt:
                refuse("terminal-absorbs", f"attempt {number} of {job_id} was {known} and becomes {attempt}")
        for uid, run in changes.runs.items():
            earlier = record.runs.get(uid)
            if earlier is not None and earlier.status in RUN_TERMINAL and earlier != run:
                refuse("terminal-absorbs", f"run {uid} was {earlier.status} and becomes {run.status}")

    def _judged(self, changes: Changes) -> list[Attempt]:
        """List the attempts that this commit judges; those judged before did not change."""
        judged = []
        for (job_id, number), attempt in changes.attempts.items():
            known = self._record.attempts[job_id].get(number)
            if attempt.decision is not None and (known is None or known.decision is None):
                judged.append(attempt)
        return judged

    def _counters(self, job: Job) -> None:
        granted = Counter(
            attempt.decision.counter
            for attempt in self._record.attempts[job.id].values()
            if attempt.decision is not None and attempt.decision.counter is not None
        )
        if dict(job.counters) != granted or job.retries != granted.total():
            kept = f"{dict(job.counters)}, {job.retries} in all"
            refuse("judged-once", f"job {job.id} counts {kept}, its decisions add up to {dict(granted)}")

    def _job(self, job: Job) -> None:
        if job.cancel_requested and job.state not in _AFTER_CANCEL:
            refuse("cancelled-stays", f"job {job.id} is {job.state} after its cancellation: {job.reason}")
        if job.state is JobState.CANCELLED and job.reason == UNLESS_STARTED:
            runs = [uid for uid, run in self._record.runs.items() if run.job_id == job.id]
            if runs or job.started_at is not None:
                refuse("started-goes-on", f"job {job.id} had started, with {runs}, and is cancelled {job.reason}")
        if job.state is JobState.SUCCEEDED and job.id not in self._record.pods:
            self._truly_succeeded(job)
        rebuilt = rebuild(self._record.events[job.id])
        if rebuilt is None or rebuilt != _as_told(job, rebuilt.updated_at):
            refuse("replay", f"job {job.id} is {job}, its events make it {rebuilt}")

    def _truly_succeeded(self, job: Job) -> None:
        attempt = self._record.attempts[job.id][job.attempt]
        programs = self._programs.of(job.id, attempt.number, attempt.dispatch)
        if len(programs) != job.gang or not all(program.well for program in programs):
            ends = [f"{program.order.uid}: {'well' if program.well else 'not well'}" for program in programs]
            refuse("true-success", f"job {job.id} of {job.gang} ranks succeeded with {ends}")

    def _attempt(self, attempt: Attempt) -> None:
        failed = attempt.ending is Ending.FAILED
        if attempt.job_id in self._record.pods:
            if attempt.decision is not None or failed != (attempt.failure is not None):
                refuse("judged-once", f"attempt {attempt.key} ended {attempt.ending} with {attempt}")
            return
        unjudged = failed != (attempt.decision is not None) or (failed and attempt.failure is None)
        if attempt.status in ATTEMPT_TERMINAL and unjudged:
            refuse("judged-once", f"attempt {attempt.key} ended {attempt.ending} with {attempt.decision}")
        if attempt.status is AttemptStatus.TERMINATING:
            self._stops_together(attempt)
        if attempt.number == 1:
            return
        before = self._record.attempts[attempt.job_id].get(attempt.number - 1)
        if before is None or before.status not in ATTEMPT_TERMINAL:
            refuse("asked-for", f"attempt {attempt.key} follows {before}")
        if before.decision is None:
            if attempt.job_id not in self._record.held or before.ending not in _HELD_ENDINGS:
                refuse("asked-for", f"attempt {attempt.key} follows {before}, and nobody held the job")
            return
        if not before.decision.grants_retry and before.decision.action is not Action.HOLD:
            refuse("asked-for", f"attempt {attempt.key} follows a decision to {before.decision.action}")

    def _taken(self, job_id: str) -> None:
        """Check that a place was not taken more often than somebody asked for it; some programs only act as if."""
        failures = [one.failure for one in self._record.attempts[job_id].values() if one.failure is not None]
        taken = [one for one in failures if one.conditions >= _PREEMPTED and one.message.startswith("asked by")]
        asked = self._record.places_asked[job_id]
        if len(taken) > asked:
            refuse("taken-when-asked", f"the place of {job_id} was taken {len(taken)} times, and asked for {asked}")

    def _stops_together(self, attempt: Attempt) -> None:
        live = self._record.live_runs.get(attempt.job_id, {}).values()
        told = {run.uid for run in live if run.status is RunStatus.TERMINATING}
        if told and len(told) < len(live):
            refuse("stops-together", f"{attempt.key} is to stop, only {told} of {[run.uid for run in live]} are told")

    def _in_total_time(self, attempt: Attempt) -> None:
        job = self._record.jobs[attempt.job_id]
        total_s = load_spec(job.spec).total_deadline_s
        if total_s is None or _retry_of(attempt) is None:
            return
        begins = max(attempt.status_since, attempt.retry_at or 0.0)
        until = (job.ready_at or job.submitted_at) + total_s
        if begins >= until:
            late = f"and the job had until {until:.3f}"
            refuse("in-total-time", f"the retry after {attempt.key} begins at {begins:.3f} or later, {late}")

    @staticmethod
    def _due(attempt: Attempt) -> None:
        decision, failure = attempt.decision, attempt.failure
        if decision is None or failure is None or not decision.grants_retry:
            return
        if attempt.retry_at is None or attempt.retry_at < failure.failed_at + decision.delay_s:
            refuse("back-off-waits", f"{attempt.key} failed at {failure.failed_at:.3f}, due at {attempt.retry_at}")

    def _limits(self, attempt: Attempt, store: Store) -> None:
        decision = _retry_of(attempt)
        if decision is None:
            return
        earlier = [
            each.decision.counter
            for each in self._record.attempts[attempt.job_id].values()
            if each.number < attempt.number and each.decision is not None and each.decision.counter is not None
        ]
        caps = {cap for when in self._clocks.true(attempt.status_since) for cap in self._caps.at(when)}
        self._within_caps(attempt, decision, len(earlier), caps)
        if decision.counter is None:
            return
        limit, inherits = self._limit(decision, self._record.jobs[attempt.job_id], store)
        allowed = caps if inherits else {limit}
        used = earlier.count(decision.counter)
        if all(most is not None and used >= most for most in allowed):
            refuse("limits-hold", f"{attempt.key}: {decision.counter} granted {used} already, limit {allowed}")

    @staticmethod
    def _within_caps(attempt: Attempt, decision: Decision, total: int, caps: set[int | None]) -> None:
        counted = decision.counter is not None
        if all(cap == 0 or (counted and cap is not None and total >= cap) for cap in caps):
            refuse("limits-hold", f"{attempt.key} is {decision.action} after {total} retries, global cap {caps}")

    @staticmethod
    def _limit(decision: Decision, job: Job, store: Store) -> tuple[int | None, bool]:
        """Work a rule's limit out anew from what was written; also whether it inherits the global cap."""
        policy = _policy(decision, job, store)
        rule = next((rule for rule in policy.rules if rule.name == decision.rule), None)
        for limit in (rule.retry_limit if rule else None, policy.retry_limit):
            if limit is not None:
                return limit, False
        return None, True

    def _explained(self, attempt: Attempt, explainer: Explainer) -> None:
        told = explainer.why(attempt.job_id, attempt.number)
        decision = told.attempt.decision if told.attempt is not None else None
        if decision is None or not told.summary or attempt.failure is None:
            refuse("explained", f"nothing explains {attempt.key}")
        if decision.rule is not None:
            matched = [(rule.policy, rule.rule) for rule in decision.considered if rule.matched]
            expected = [] if decision.rule_index is None else [(decision.policy, decision.rule)]
            if matched[:1] != expected or not decision.reason:
                refuse("explained", f"{attempt.key} was decided by {decision.rule}, explained by {matched}")
        elif attempt.failure.cause is Cause.USER_CANCELLED:
            refuse("explained", f"{attempt.key} was cancelled and is judged")
        self._counts(attempt, decision)

    def _counts(self, attempt: Attempt, decision: Decision) -> None:
        earlier = Counter(
            each.decision.counter
            for each in self._record.attempts[attempt.job_id].values()
            if each.number < attempt.number and each.decision is not None and each.decision.counter is not None
        )
        for use in decision.limits:
            really = earlier.total() if use.name == GLOBAL_LIMIT else earlier[use.name]
            if use.used != really:
                refuse("explained", f"{attempt.key} says {use.name} granted {use.used}; it had granted {really}")


_NO_FAILURE = frozenset({DecisionCode.INTERRUPTED, DecisionCode.SHORTAGE})


def _retry_of(attempt: Attempt) -> Decision | None:
    """Return the decision that retries a failure, if one does; what its node stopped or refused has not failed."""
    decision = attempt.decision
    granted = decision is not None and decision.grants_retry and decision.code not in _NO_FAILURE
    return decision if granted else None


def _policy(decision: Decision, job: Job, store: Store) -> RetryPolicy:
    """Find the policy that decided, as it was then."""
    if decision.policy == INFRASTRUCTURE.name:
        return INFRASTRUCTURE
    if decision.policy == CHECKPOINTED:
        return first_policies(load_spec(job.spec))[0]
    for policy in load_spec(job.spec).inline_policies:
        if policy.name == decision.policy:
            return policy
    return store.policy_revision(decision.policy or "", decision.policy_revision or 0)


def _as_told(job: Job, updated_at: float) -> Job:
    """Return a job without what no event tells."""
    return evolve(job, spec="", seq=0, kind=GANG, ready_at=None, met=(), updated_at=updated_at)
