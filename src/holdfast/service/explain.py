"""Explains decisions: works out from the stored facts which rules were considered and why.

The controller stores with each judged attempt its failure, and its decision with the policy's revision, the rule, the
counter a granted retry added to, and the limits checked (``globalMaxRetries`` if it was set). It judges with the
queue's, the job's named and its inline policies, in that order, then the built-in one. The revisions of the policies
that did not decide are not stored: the current ones are used, and if they would lead to another decision, the deciding
policy is shown alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.failure import Cause, EndedBy
from holdfast.domain.job import JobState
from holdfast.domain.policy.builtin import CHECKPOINTED, INFRASTRUCTURE, LOST_ONLY
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import GLOBAL_LIMIT, decide
from holdfast.domain.policy.explain import explain
from holdfast.domain.policy.model import RetryHistory
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import SessionType, session_id
from holdfast.domain.workloads.explanation import Explanation
from holdfast.domain.workloads.gang.policies import compiled_for, first_policies, jitter_seed
from holdfast.errors import NotFound, UnreadableSpec
from holdfast.service.access.hiding import unnamed, unquoted, without_logs
from holdfast.service.naming import find_attempt
from holdfast.service.quarantined import kind_of_owner, reason_of
from holdfast.service.summary import awaited_lines, cancelled_line, failed_pods, job_line, paused_lines, pod_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.policy.model import Decision, RetryPolicy, RetrySettings
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.store import Store

_MOST_COMPILED = 256


RELEASED_BY = (
    "Holdfast leaves it alone, and no other job is affected. This is a bug in Holdfast: please report it.",
    "Any request for it, such as holdfast release or cancel, or a restart of the server makes Holdfast try again.",
)


class Explainer:
    """Explains jobs. Keeps compiled policies while the catalogue stays the same."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._catalogue: Catalogue | None = None
        self._compiled: dict[tuple[object, ...], PolicySet] = {}

    def explained(self, job: Job, attempts: Sequence[Attempt]) -> list[Attempt]:
        """Add the considered rules to the decisions of all attempts of a job."""
        return [self._complete(job, attempts, attempt) for attempt in attempts]

    def why(
        self, reference: str, number: int | None = None, *, quoting: bool = True, seen: Seen | None = None
    ) -> Explanation[Job]:
        """Explain a job by one attempt, or by the last one that was judged.

        Args:
            reference: The job.
            number: The attempt's number.
            quoting: Whether to quote program output.
            seen: The other jobs that may be described; ``None``: all.

        Raises:
            NotFound: The job or the attempt does not exist.
        """
        job = self._store.job(reference)
        if not quoting:
            job = evolve(job, reason=unquoted(job.reason))
        if seen is not None and seen.places is not None:
            job = evolve(job, reason=unnamed(job.reason))
        attempts = self._store.attempts(job.id)
        quarantined = self._store.quarantined().get(job.id)
        if quarantined is not None and number is None:
            return Explanation(job, f"Job {job.name} is {reason_of(quarantined)}", RELEASED_BY)
        if number is not None:
            chosen: Attempt | None = find_attempt(job, attempts, number)
        else:
            latest = attempts[::-1]
            judged = (candidate for candidate in latest if candidate.decision is not None)
            chosen = next(judged, next((candidate for candidate in latest if candidate.failure is not None), None))
        paused = paused_lines(self._store, ended=job.terminal, headline=job.reason)
        if chosen is None:
            pods = failed_pods(self._store, job, number or job.attempt)
            pods = pods if quoting else [*map(without_logs, pods)]
            lines = awaited_lines(self._store, job, seen) or pod_lines(self._store, job, failed=pods)
            return Explanation(job, self._line(job), (*lines, *paused), failed_pods=pods)
        complete = self._complete(job, attempts, chosen)
        pods = () if complete.decision is not None else failed_pods(self._store, job, complete.number)
        if not quoting:
            complete, pods = without_logs(complete), [*map(without_logs, pods)]
        summary = self._summary(job, attempts, complete, number, pods)
        of_session = session_lines(job, attempts, complete)
        return Explanation(job, self._line(job, complete), (*of_session, *summary, *paused), complete, pods)

    def _line(self, job: Job, last: Attempt | None = None) -> str:
        if job.state is JobState.WAITING and job.of_set is not None:
            return job_line(job, last, owner=kind_of_owner(self._store, job.of_set).noun)
        return job_line(job, last)

    def _summary(
        self, job: Job, attempts: Sequence[Attempt], attempt: Attempt, number: int | None, failed: Sequence[Run]
    ) -> Sequence[str]:
        if attempt.decision is None or attempt.failure is None:
            now = number in {None, job.attempt}
            if attempt.failure is None or attempt.failure.cause is not Cause.USER_CANCELLED:
                return pod_lines(self._store, job, attempt, failed=failed, now=now)
            return (cancelled_line(attempt, attempt.failure), *pod_lines(self._store, job, failed=failed, now=now))
        history = history_before(job, attempts, attempt)
        return explain(attempt.decision, attempt.failure, history, self._current().settings)

    def _complete(self, job: Job, attempts: Sequence[Attempt], attempt: Attempt) -> Attempt:
        if attempt.decision is None or attempt.failure is None:
            return attempt
        try:
            rebuilt = self._rebuilt(job, attempt.decision, attempt.failure, history_before(job, attempts, attempt))
        except UnreadableSpec:
            rebuilt = None
        if rebuilt is None:
            return attempt
        # A different delay means that it had random jitter, or that the back-off was edited since.
        how = rebuilt.delay_because if rebuilt.delay_s == attempt.decision.delay_s else ""
        decision = evolve(attempt.decision, considered=rebuilt.considered, delay_because=how)
        return evolve(attempt, decision=decision)

    def _rebuilt(self, job: Job, decision: Decision, failure: Failure, history: RetryHistory) -> Decision | None:
        """Repeat the decision; ``None`` if the policies of that time cannot be found any more."""
        settings = settings_then(decision, self._current().settings)
        history = evolve(history, seed=jitter_seed(load_spec(job.spec), job.id, history.total))
        for policies in (self._policies_of(job, decision), *self._deciding_alone(job, decision)):
            rebuilt = policies.about_drain(failure) if failure.ended_by is EndedBy.DRAIN else None
            again = decide(rebuilt or policies, failure, history, settings, draw=0.0, explain=True)
            if (again.policy, again.rule) == (decision.policy, decision.rule):
                return again
        return None

    def _policies_of(self, job: Job, decision: Decision) -> PolicySet:
        """Compile the policies that apply to a job now, with the deciding policy as of the decision."""
        catalogue = self._current()
        key = (catalogue.version, job.queue, job.spec, decision.policy, decision.policy_revision)
        policies = self._compiled.get(key)
        if policies is None:
            spec = load_spec(job.spec)
            named, _ = catalogue.policies_for(job.queue, spec)
            then = [self._as_then(policy, decision) for policy in named]
            policies = compiled_for(spec, then, builtin=catalogue.settings.builtin)
            if len(self._compiled) >= _MOST_COMPILED:
                self._compiled = {}
            self._compiled[key] = policies
        return policies

    def _as_then(self, policy: RetryPolicy, decision: Decision) -> RetryPolicy:
        if policy.name != decision.policy or policy.revision == decision.policy_revision:
            return policy
        return self._revision(decision) or policy

    def _deciding_alone(self, job: Job, decision: Decision) -> Iterator[PolicySet]:
        """Compile the deciding policy alone: its stored revision, the job's inline policy, or the built-in one."""
        if decision.policy == INFRASTRUCTURE.name:
            yield from (
                PolicySet.compile([], infrastructure=infrastructure) for infrastructure in (INFRASTRUCTURE, LOST_ONLY)
            )
        if decision.policy == CHECKPOINTED:
            yield PolicySet.compile([], first=first_policies(load_spec(job.spec)))
        named = self._revision(decision)
        inline = [policy for policy in load_spec(job.spec).inline_policies if policy.name == decision.policy]
        for policy in (*([named] if named else []), *inline):
            yield PolicySet.compile([policy], infrastructure=INFRASTRUCTURE)

    def _revision(self, decision: Decision) -> RetryPolicy | None:
        if decision.policy is None or decision.policy_revision is None:
            return None
        try:
            return self._store.policy_revision(decision.policy, decision.policy_revision)
        except NotFound:
            return None

    def _current(self) -> Catalogue:
        """Read the catalogue, once for each of its versions."""
        catalogue = self._catalogue
        if catalogue is None or catalogue.version != self._store.catalogue_version():
            catalogue = self._store.catalogue()
            self._catalogue, self._compiled = catalogue, {}
        return catalogue


def history_before(job: Job, attempts: Sequence[Attempt], attempt: Attempt) -> RetryHistory:
    """Return the history at the decision about an attempt: the retries granted to earlier attempts."""
    counters: dict[str, int] = {}
    for earlier in attempts:
        counter = earlier.decision.counter if earlier.decision else None
        if earlier.number < attempt.number and counter is not None:
            counters[counter] = counters.get(counter, 0) + 1
    return RetryHistory(
        seed=job.id,
        attempt=attempt.number,
        counters=tuple(counters.items()),
        total=sum(counters.values()),
        memory=attempt.request.memory,
    )


def session_lines(job: Job, attempts: Sequence[Attempt], attempt: Attempt) -> tuple[str, ...]:
    """Say which session of its chain an attempt was part of, if the job is a session."""
    try:
        session = load_spec(job.spec).session
    except UnreadableSpec:
        return ()
    if session is None:
        return ()
    retry_count = history_before(job, attempts, attempt).total
    of = 1 + (session.policy.max_retries if session.type is SessionType.BATCH else 0)
    return (f"Session {session_id(job.id, retry_count)} is attempt {retry_count + 1} of {of} of its chain.",)


def settings_then(decision: Decision, today: RetrySettings) -> RetrySettings:
    """Return the settings at a decision: the current ones, with the global limit that the decision recorded."""
    for use in decision.limits:
        if use.name == GLOBAL_LIMIT:
            return evolve(today, global_max_retries=use.limit)
    return evolve(today, global_max_retries=None)
