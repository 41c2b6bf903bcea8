"""Checks each commit's job sets against everything committed before: judgements, counters, budgets, ends."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.domain.events.workloads import JobSetDecided
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, Ending
from holdfast.domain.policy.model import SetAction
from holdfast.domain.workloads.jobset.explain import explain_decision
from holdfast.domain.workloads.jobset.rules import DEFAULT_RULE
from holdfast.domain.workloads.jobset.state import JobSet, SetDecision
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.domain.job import Attempt
    from holdfast.ports.store import Changes
    from tools.simulate.clocks import Readings
    from tools.simulate.invariants.setrecord import SetRecord

_WHOLE = {SetAction.RESTART_JOB_SET, SetAction.RESTART_JOB_SET_UNCOUNTED}
_GROUP = {SetAction.RESTART_GROUP, SetAction.RESTART_GROUP_UNCOUNTED}
_JOB = {SetAction.RESTART_JOB, SetAction.RESTART_JOB_UNCOUNTED}
_RESTARTS = _WHOLE | _GROUP | _JOB
_COUNTED = {SetAction.RESTART_JOB_SET, SetAction.RESTART_GROUP, SetAction.RESTART_JOB}


class SetChecks:
    """What must hold of every commit about job sets."""

    def __init__(self, record: SetRecord, clocks: Readings) -> None:
        """Remember what to compare with; ``clocks`` are the controllers'."""
        self._clocks = clocks
        self._record = record
        self.decisions = 0

    def check(self, changes: Changes) -> None:
        """Check one commit, then make it part of the record; the record of all jobs has it already."""
        record = self._record
        self._absorbing(changes)
        made = [entry for entry in changes.set_log if isinstance(entry.what, SetDecision)]
        fresh = [attempt for key, attempt in changes.attempts.items() if key not in record.generations]
        record.fold(changes)
        self.decisions += len(made)
        for set_id in self._changed(changes):
            self._whole(record.rows[set_id])
        for entry in made:
            if isinstance(entry.what, SetDecision):
                self._decision(entry.set_id, entry.what)
        self._told(changes, len(made))
        for attempt in fresh:
            if attempt.job_id in record.record.pods:
                self._begun(attempt, changes)
        for set_id in changes.forgotten.keys() & record.jobs.keys():
            self._gone(set_id)

    def _changed(self, changes: Changes) -> set[str]:
        """List the sets there are that a commit says anything of."""
        jobs = self._record.record.jobs
        children = [jobs[job_id].of_set for job_id in (*changes.of(KubeJobRecord), *changes.jobs)]
        changed = {child.set_id for child in children if child is not None}
        changed |= {*changes.workloads, *(entry.set_id for entry in changes.set_log)}
        return changed & self._record.rows.keys()

    def _absorbing(self, changes: Changes) -> None:
        for row in changes.of(JobSet).values():
            before = self._record.accepted.get(row.id)
            if before is None or row.id not in self._record.rows:
                refuse("terminal-absorbs", f"job set {row.id} is committed and is not there")
            if before.deleting and not row.deleting:
                refuse("terminal-absorbs", f"job set {row.id} was being deleted, and is not any more")
            was, now = before.state, row.state
            if was.terminal and (was.terminal, was.ended_at, _counters(row)) != (
                now.terminal,
                now.ended_at,
                _counters(before),
            ):
                refuse("terminal-absorbs", f"job set {row.id} was {was}, and becomes {now}")

    def _whole(self, row: JobSet) -> None:
        self._judged_once(row)
        self._adds_up(row)
        self._within_budgets(row)

    def _failed(self, row: JobSet) -> Iterable[tuple[str, KubeJobRecord]]:
        """List a set's jobs whose current attempts have failed, as committed."""
        state = row.state
        for job in self._record.jobs[row.id].values():
            kept = self._record.kube_jobs.get(job.id)
            if kept is None or not kept.present or kept.deleting_since is not None or job.of_set is None:
                continue
            own = state.restarts_of(job.of_set.group, job.of_set.index)
            if (kept.restart, kept.job_restart) == (state.restarts, own) and kept.state.condition("Failed"):
                yield job.name, kept

    def _judged_once(self, row: JobSet) -> None:
        """Require one decision for each failure of a set that goes on, never more."""
        judged = Counter((decision.job, decision.attempt) for decision in self._record.decisions(row.id))
        twice = [each for each, times in judged.items() if times > 1]
        if twice:
            refuse("sets-judge-once", f"{row.name}: {twice} were judged more than once")
        if row.state.terminal or row.deleting:
            return
        for name, kept in self._failed(row):
            if not judged[name, (kept.restart, kept.job_restart)]:
                refuse("sets-judge-once", f"{name} failed, and nobody judged it: {kept}")

    def _adds_up(self, row: JobSet) -> None:
        """Require a set's counters to be the sums of its decisions and of what people asked for."""
        granted = [
            one for one in self._record.decisions(row.id) if one.granted and one.action in _WHOLE | _GROUP | _JOB
        ]
        where = {job.name: job.of_set for job in self._record.jobs[row.id].values()}
        by_hand = self._record.by_hand[row.id]
        expected: dict[str, Counter[str]] = {"rules": Counter(), "restarts": Counter(by_hand), "counted": Counter()}
        for one in granted:
            at = where[one.job]
            if at is None or one.action is None:
                refuse("sets-add-up", f"{row.name}: {one} is about no job of it")
            scope = "" if one.action in _WHOLE else at.group if one.action in _GROUP else f"{at.group}/{at.index}"
            expected["rules"][one.rule or DEFAULT_RULE.name] += 1
            expected["restarts"][scope] += 1
            expected["counted"][scope] += one.action in _COUNTED
        found = _counters(row)
        if found != {name: +counts for name, counts in expected.items()}:
            refuse("sets-add-up", f"{row.name} counts {found}, its decisions and people make it {expected}")

    def _within_budgets(self, row: JobSet) -> None:
        spec, state = self._record.spec(row), row.state
        policy = spec.failure
        if policy is None:
            return
        used = state.counted - state.forgiven
        if policy.window_s is not None:
            used = sum(at > row.updated_at - policy.window_s for at in state.counted_at)
        limits = [("maxRestarts", used, _most(policy.max_restarts))]
        limits += [(one.name, state.rule_restarts.get(one.name, 0), _most(one.limit)) for one in policy.rules]
        limits += [(one.name, state.blamed.get(one.name, 0), _most(one.max_restarts)) for one in spec.replicated_jobs]
        in_place = (state.in_place_current or 0) - (state.restarts - state.restarts_counted)
        limits.append(("maxRestarts in place", in_place, policy.max_restarts))
        over = [(name, used, limit) for name, used, limit in limits if used > limit]
        if over:
            refuse("sets-within-budgets", f"{row.name}: {over}")

    def _decision(self, set_id: str, decision: SetDecision) -> None:
        """Check a decision that was just made: that it is about a failure, and can be explained."""
        row = self._record.accepted[set_id]
        job = self._record.jobs[set_id][decision.job]
        number = 1 + sum(decision.attempt)
        attempt = self._record.record.attempts[job.id].get(number)
        policy = self._record.spec(row).failure
        kept = self._record.kube_jobs[job.id]
        # Where commits were refused meanwhile, only the record of its next attempt is left to see.
        late = kept.restart + kept.job_restart >= number
        sure = late or kept.state.condition("FailureTarget") is not None
        certain = policy is not None and policy.on_certain and sure
        if attempt is None or (attempt.ending is not Ending.FAILED and not certain):
            refuse("sets-judge-once", f"{decision.job} is judged, its attempt {number} has not failed: {attempt}")
        matched = [rule.rule for rule in decision.considered if rule.matched]
        expected = [] if decision.rule is None else [decision.rule]
        if matched != expected or not decision.reason or not decision.message or not explain_decision(decision):
            refuse("explained", f"{decision} is explained by {matched}")
        if decision.granted is any(use.limit is not None and use.used >= use.limit for use in decision.limits):
            disabled = decision.reason == "RestartsDisabled"
            if not disabled:
                refuse("sets-within-budgets", f"{decision.job}: granted {decision.granted} with {decision.limits}")

    @staticmethod
    def _told(changes: Changes, decisions: int) -> None:
        told = sum(isinstance(record.event, JobSetDecided) for record in changes.events.values())
        if told != decisions:
            refuse("explained", f"{decisions} decisions of job sets are logged, {told} are told of")

    def _begun(self, attempt: Attempt, changes: Changes) -> None:
        """Check that an attempt at a job made of pods was asked for, and not before its time."""
        kept = self._record.kube_jobs.get(attempt.job_id)
        over = attempt.status in ATTEMPT_TERMINAL
        if kept is None or (attempt.number != 1 + kept.restart + kept.job_restart and not over):
            refuse("asked-for", f"{attempt.key} begins, remembered is {kept}")
        earlier = self._record.record.attempts[attempt.job_id]
        older = (one for number, one in earlier.items() if number < attempt.number)
        living = [one.number for one in older if one.status not in ATTEMPT_TERMINAL]
        if living:
            refuse("asked-for", f"{attempt.key} begins while attempts {living} are not over")
        row, job = self._record.set_of(attempt.job_id), self._record.record.jobs[attempt.job_id]
        if row is None or job.of_set is None:
            if attempt.number != 1:
                refuse("asked-for", f"{attempt.key} begins, and nobody restarts that job")
            return
        state, at = row.state, job.of_set
        # The last record of a set that this commit deletes is not committed.
        restarted = kept.restart <= state.restarts and kept.job_restart <= state.restarts_of(at.group, at.index)
        if not restarted and row.id not in changes.forgotten:
            refuse("asked-for", f"{attempt.key} begins, its set was restarted {state.restarts} times: {kept}")
        if (state.terminal or row.deleting) and not over and kept.deleting_since is None:
            refuse("asked-for", f"{attempt.key} begins while its set is {state.terminal or 'deleted'}")
        if not self._record.by_hand[row.id]:
            self._due(row, attempt)

    def _due(self, row: JobSet, attempt: Attempt) -> None:
        name = self._record.record.jobs[attempt.job_id].name
        for entry in self._record.log[row.id]:
            decision = entry.what
            if not isinstance(decision, SetDecision) or not decision.granted or decision.job != name:
                continue
            due = entry.at + decision.delay_s
            if attempt.number > 1 + sum(decision.attempt) and self._clocks.is_early(attempt.created_at, due):
                refuse("back-off-waits", f"{name} begins {attempt.number} at {attempt.created_at}, due at {due}")

    def _gone(self, set_id: str) -> None:
        for job in self._record.jobs[set_id].values():
            if not self._record.record.jobs[job.id].terminal:
                refuse("nothing-outlives", f"job set {set_id} is deleted, its job {job.name} is not over")


def _counters(row: JobSet) -> Mapping[str, Counter[str]]:
    """Write all counters of a set down alike: by rule, and by what was restarted."""
    state = row.state
    restarts = Counter({"": state.restarts}) + Counter(state.group_restarts)
    counted = Counter({"": state.restarts_counted}) + Counter(state.group_restarts_counted)
    for counts, by_group in ((restarts, state.job_restarts), (counted, state.job_restarts_counted)):
        for group, by_index in by_group.items():
            counts.update({f"{group}/{index}": times for index, times in by_index.items()})
    return {"rules": +Counter(state.rule_restarts), "restarts": +restarts, "counted": +counted}


def _most(limit: int | None) -> float:
    return float("inf") if limit is None else limit
