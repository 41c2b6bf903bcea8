"""Decides which failed programs of a job's pods restart in their pod.

A failed program restarts in its pod with its job set, by a policy, or by ``restartPolicy``. These are asked in this
order; if none grants a retry, the pod has failed and its Job judges it. A program that could not start because of a
shortage of its node always restarts.

The restart barrier. Where all of a set restart in place, one failed program means that every program of the set is to
start anew, and together: a rank that went on with peers of an older restart would hang or, worse, mix two computations.
So each pod counts the restarts it has been through, and its set keeps two numbers, the restart that all pods have left
behind and the one they may begin (``Barrier``). A pod whose program has ended raises its own count and waits; a program
that still belongs to the restart left behind is stopped; and only when the last pod of the set has arrived does the set
move the second number, which lets all of them start. Pods keep their places meanwhile, or a stranger's job could take
one and the set would wait for ever. The counts are stored with the pods, so a controller that takes over finds the set
at the barrier exactly as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.classify import classify
from holdfast.domain.failure import EndedBy, failure_in_words
from holdfast.domain.lifecycle import RUN_TERMINAL, RunStatus
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action
from holdfast.domain.record import evolve
from holdfast.domain.shortage import shortage_of
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.judge import Try, judge
from holdfast.domain.workloads.kubejob.model import RestartPolicy
from holdfast.domain.workloads.kubejob.pods import SetNotice, failed_by_itself, is_disruption, named
from holdfast.domain.workloads.kubejob.rulesets import MAX_RESTARTS, in_place, on_failure
from holdfast.domain.workloads.orders import RunOrders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.failure import Failure, RunOutcome
    from holdfast.domain.job import Run
    from holdfast.domain.policy.model import Decision
    from holdfast.domain.workloads.judge import RetryVerdict, Ruleset
    from holdfast.domain.workloads.kubejob.pods import LivePod, PodFacts
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord, PodRecord

_STOPPED = frozenset({EndedBy.CASCADE, EndedBy.SUSPENSION})


class ProgramRestarts:
    """Decides what follows from the facts about the programs of a job's pods, and collects orders."""

    def __init__(
        self,
        facts: PodFacts,
        record: KubeJobRecord,
        pods: Mapping[str, LivePod],
        now: float,
        *,
        last_failure: Failure | None = None,
    ) -> None:
        self.facts = facts
        self.record = record
        self.pods = dict(pods)
        self.orders = RunOrders()
        self.enqueue: list[str] = []
        """Names of pods to add to the pending queue."""
        self.dequeue: list[str] = []
        """Entries to remove from the pending queue."""
        self.notices: list[SetNotice] = []
        self.last_failure = last_failure
        self.attempt = facts.attempt
        self.wake_at: float | None = None
        self.now = now

    @property
    def _goes_on(self) -> bool:
        return self.record.deleting_since is None and not self.record.suspended

    def refresh(self) -> None:
        """Update pods from their runs; a program that is never confirmed stopped is given up eventually."""
        for name, pod in self.pods.items():
            if pod.run is None:
                continue
            run = self.facts.runs.get(pod.run.uid, pod.run)
            due = self.give_up_time(run)
            if due is not None and due <= self.now:
                run = run.ended(run.lost(self.now), self.now)
                self.orders.put[run.uid] = run
            run = self._with_eviction_reason(pod.record, run)
            if run is not pod.run:
                self.pods[name] = evolve(pod, run=run, shown=None)
            if run.status in RUN_TERMINAL and run.started_at is not None and self.attempt.started_at is None:
                # The run ended before it was seen running.
                self.attempt = evolve(self.attempt, started_at=run.started_at)
            self.record_last_failure(name, run)

    def record_last_failure(self, name: str, run: Run) -> None:
        """Remember how a program failed by itself, which may explain the failure of its job."""
        if run.outcome is not None and failed_by_itself(run.outcome):
            self.last_failure = self.failure_of(name, run)

    def _with_eviction_reason(self, record: PodRecord, run: Run) -> Run:
        """Add to the outcome of an evicted run what its machine lacked."""
        outcome = run.outcome
        if not record.taken or outcome is None or outcome.message or outcome.ended_by is not EndedBy.EVICTION:
            return run
        ended = evolve(run, outcome=evolve(outcome, message=record.taken))
        self.orders.note[run.uid] = ended
        return ended

    def give_up_time(self, run: Run) -> float | None:
        """Return when a program that is to stop or start is given up; ``None`` is never."""
        wait_s = None
        if run.status is RunStatus.TERMINATING:
            wait_s = self.facts.patience.stop_s
        elif run.status is RunStatus.CREATING:
            wait_s = self.facts.patience.start_s
        return None if wait_s is None else self.facts.since(run.status_since) + wait_s

    def failure_of(self, name: str, run: Run) -> Failure:
        """Classify the failure of a pod's program, once, with the container name that the pod gives it."""
        pod = self.pods[name]
        if pod.failure is not None and pod.failure[0] == run.uid:
            return pod.failure[1]
        if run.outcome is None:
            msg = f"run {run.uid} has no outcome"
            raise ValueError(msg)
        container = self.facts.plan.program.container
        failure = classify(named(run.outcome, container), rank=run.rank, categories=self.facts.categories)
        if run.devices:
            failure = evolve(failure, devices=run.devices)
        self.pods[name] = evolve(pod, failure=(run.uid, failure))
        return failure

    # restarts

    def await_next_programs(self) -> None:
        """Let pods whose program has ended wait for the next one, if it restarts."""
        plan, goes_on = self.facts.plan, self._goes_on
        in_place = plan.in_place and goes_on
        restarts = plan.in_place or plan.policies or plan.spec.restart_policy is RestartPolicy.ON_FAILURE
        for name, pod in list(self.pods.items()):
            run = pod.run
            if run is None and in_place and pod.record.in_place < self.facts.barrier.first:
                # An idle pod catches up with the others' restart in place, even if it is pending already.
                self.withdraw(name)
                self.change(name, evolve(pod.record, in_place=self.facts.barrier.first))
            if run is None or name in self.record.state.counted:
                continue
            if run.status not in RUN_TERMINAL:
                if in_place:
                    self._stop_straggler(name, pod.record, run)
                continue
            outcome = run.outcome
            if outcome is not None and not outcome.succeeded and (shortage_of(outcome) or (restarts and goes_on)):
                self._ended(name, pod.record, run)

    def _stop_straggler(self, name: str, record: PodRecord, run: Run) -> None:
        """Stop a program of an earlier restart than the one at the barrier."""
        previous = self.facts.barrier.previous
        if previous is not None and record.in_place <= previous and run.status is not RunStatus.TERMINATING:
            self.put_run(name, run.entered(RunStatus.TERMINATING, self.now))

    def _ended(self, name: str, record: PodRecord, run: Run) -> None:
        """Judge a failed program, store the decision with it, and let its pod wait for the next one if it restarts."""
        if run.outcome is None:
            return
        failure, plan = self.failure_of(name, run), self.facts.plan
        verdict = self._judge(record, run, run.outcome, failure)
        if verdict is None:
            return
        decision, restarted = verdict.decision, self._restarted(record, verdict)
        if failure.ended_by not in _STOPPED:
            self._notify_set(record, failure, decision)
            if plan.in_place and not decision.grants_retry:
                reason = f"{failure_in_words(failure)}; {decision.reason}"
                self.record = evolve(self.record, failed_in_place=reason)
            if restarted is None:
                self.pods[name] = evolve(self.pods[name], declined=decision)
            else:
                run = evolve(run, failure=failure, decision=decision)
                self.orders.note[run.uid] = run
        if restarted is not None:
            self.change(name, evolve(restarted, waiting=True))
            self.await_next(name, run)

    def _judge(self, record: PodRecord, run: Run, outcome: RunOutcome, failure: Failure) -> RetryVerdict | None:
        """Judge a failed program by the rulesets that may restart it; ``None`` if only its Job judges it."""
        facts, plan, most = self.facts, self.facts.plan, self._max_in_place
        judgement = facts.judging(run)
        rulesets = self._rulesets(outcome, judgement.ruleset)
        if not rulesets and shortage_of(failure) is None:
            return None
        shape = plan.shape(facts.job, record, domain=self.record.domain)
        reached = max(record.in_place, self._reached if plan.in_place else -1)
        restarts = ((MAX_RESTARTS, min(reached, most)),)
        failed = Try(facts.job.id, 1 + record.restarts, shape, (run,), restarts)
        verdict = judge(failure, record, failed, judgement, rulesets)
        if plan.in_place and verdict.decision.code is DecisionCode.POLICY_LIMIT:
            reason = f"all {most} restarts in place of its job set are used ({MAX_RESTARTS})"
            verdict = verdict._replace(decision=evolve(verdict.decision, reason=reason))
        return verdict

    def _rulesets(self, outcome: RunOutcome, ruleset: Ruleset) -> tuple[Ruleset, ...]:
        """List the rulesets that may restart a program, in the order in which they are asked."""
        plan = self.facts.plan
        if plan.in_place:
            # A set's own limit counts its restarts; the operator's cap counts retries.
            uncapped = evolve(ruleset.settings, global_max_retries=None)
            return (evolve(ruleset, policies=in_place(self._max_in_place), settings=uncapped, any_cause=True),)
        rulesets: tuple[Ruleset, ...] = (ruleset,) if plan.policies else ()
        if plan.spec.restart_policy is RestartPolicy.ON_FAILURE and not is_disruption(outcome):
            rulesets += (evolve(ruleset, policies=on_failure(self.facts.backoff), any_cause=True),)
        return rulesets

    @property
    def _reached(self) -> int:
        """The restart in place that all pods of the set have left behind."""
        previous = self.facts.barrier.previous
        return -1 if previous is None else previous

    @property
    def _max_in_place(self) -> int:
        """The last restart in place that its set may make: its ``maxRestarts`` plus uncounted restarts."""
        return self.facts.plan.max_restarts + self.facts.barrier.uncounted

    def _restarted(self, record: PodRecord, verdict: RetryVerdict) -> PodRecord | None:
        """Return a pod as it waits for its next program; ``None`` if it has failed."""
        decision, history = verdict
        due = self.now + decision.delay_s
        if decision.code is DecisionCode.SHORTAGE:
            return evolve(record, due=due if decision.delay_s else None)
        record = evolve(record, tried=history.tried)
        if self.facts.plan.in_place:
            # Even beyond the limit: the set sees that this is one restart too many, and fails.
            return evolve(record, in_place=max(record.in_place, self._reached) + 1, due=None)
        record = evolve(record, restarts=record.restarts + 1)
        if decision.action is Action.HOLD:
            return evolve(record, due=None, held=decision.reason)
        if not decision.grants_retry:
            return None
        return evolve(record, due=due, memory=decision.memory or record.memory, **history._asdict())

    def await_next(self, name: str, run: Run) -> None:
        """Let a pod wait for its next program; a restart in place keeps its place until it leaves the barrier."""
        pod = evolve(self.pods[name], run=None, last=run, shown=None)
        self.orders.forget.append(run.uid)
        keeps = self.facts.plan.in_place and not pod.record.place_given_up
        if keeps and run.outcome is not None and not is_disruption(run.outcome) and not shortage_of(run.outcome):
            kept = evolve(run, uid=f"{run.uid}/kept")
            pod = evolve(pod, kept=kept)
            self.orders.keep[kept.uid] = kept
        self.pods[name] = pod

    def give_up(self, name: str) -> None:
        """Withdraw a pod that will get no place; its last failure is judged again under current conditions."""
        self.withdraw(name)
        pod = self.pods[name]
        if pod.last is not None:
            record = evolve(pod.record, waiting=False)
            self.pods[name] = evolve(pod, record=record, run=pod.last, last=None, shown=None)

    def _notify_set(self, record: PodRecord, failure: Failure, decision: Decision) -> None:
        """Write to the log of the job's set what the set's rules do not see."""
        what, plan = f"pod {record.name}: {failure_in_words(failure)}", self.facts.plan
        if plan.in_place and shortage_of(failure) is None:
            notice = SetNotice("Warning", "RestartInPlace", f"{what}; the set restarts in place")
            if not decision.grants_retry:
                notice = SetNotice("Warning", "RestartInPlaceRefused", f"{what}; {decision.reason}")
        elif decision.policy not in plan.policies:
            return
        else:
            what = f"{what}; policy {decision.policy}, rule {decision.rule}: {decision.reason}"
            wait = f"; retried in {format_duration(decision.delay_s)}" if decision.delay_s else ""
            notice = SetNotice("Normal", "RetriedByPolicy", f"{what}{wait}")
            if decision.action is Action.HOLD:
                notice = SetNotice("Warning", "HeldByPolicy", f"{what}; release job {self.facts.job.name} to retry")
            elif not decision.grants_retry:
                notice = SetNotice("Warning", "RetryPolicyGaveUp", what)
        self.notices.append(notice)

    # small steps

    def change(self, name: str, record: PodRecord) -> None:
        """Change a pod's record."""
        self.pods[name] = evolve(self.pods[name], record=record, shown=None)

    def put_run(self, name: str, run: Run) -> None:
        """Change a pod's run."""
        self.pods[name] = evolve(self.pods[name], run=run, shown=None)
        self.orders.put[run.uid] = run

    def withdraw(self, name: str) -> None:
        """Take a pod out of the pending queue."""
        if request := self.pods[name].request:
            self.pods[name] = evolve(self.pods[name], request="")
            self.dequeue.append(request)

    def give_up_place(self, name: str) -> None:
        """Let a pod wait for any place; the record tells the next controller that its place is no longer kept."""
        self.give_back(name)
        self.change(name, evolve(self.pods[name].record, place_given_up=True))

    def give_back(self, name: str) -> None:
        """Release the place that a pod kept."""
        if kept := self.pods[name].kept:
            self.pods[name] = evolve(self.pods[name], kept=None)
            if self.orders.keep.pop(kept.uid, None) is None:
                self.orders.give_back.append(kept.uid)
