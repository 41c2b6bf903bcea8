"""How decisions, classification, placement and scheduling can be broken."""

from __future__ import annotations

from tools.mutate.mutation import WORLDS, Mutation

_UNKNOWN = ("unit/test_unknown_end.py",)

MUTATIONS = (
    Mutation(
        "a rule without a name is another one once its limit changes",
        "domain/policy/identity.py",
        '        "action": rule.action.value,',
        '        "action": rule.action.value, "limit": rule.retry_limit,',
        ("unit/test_rule_identity.py",),
    ),
    Mutation(
        "a rule grants one retry too many",
        "domain/policy/decide.py",
        "if limit is not None and used >= limit:",
        "if limit is not None and used > limit:",
        ("unit/test_policy_decide.py",),
    ),
    Mutation(
        "a job's policies are compiled when it fails",
        "controller/workloads/gangs.py",
        "            catalog.compiled(job, spec)",
        "            pass",
        ("unit/test_policy_catalog.py",),
    ),
    Mutation(
        "a container's reason is forgotten where conditions rule a category out",
        "domain/classify.py",
        "            there.add(container.reason)",
        "            pass",
        ("unit/test_category.py",),
    ),
    Mutation(
        "each job has its policies compiled for itself",
        "controller/policy_catalog.py",
        "(job.queue, spec.retry_policies, spec.inline_policies, ",
        "(job.id, spec.retry_policies, spec.inline_policies, ",
        ("unit/test_policy_catalog.py",),
    ),
    Mutation(
        "the global cap grants one retry too many",
        "domain/policy/decide.py",
        "history.total >= cap and not",
        "history.total > cap and not",
        ("unit/test_policy_decide.py",),
    ),
    Mutation(
        "what is ignored counts for the global cap",
        "domain/policy/decide.py",
        " and action is not Action.IGNORE:",
        ":",
        ("unit/test_policy_decide.py",),
    ),
    Mutation(
        "what must never be retried is retried",
        "domain/policy/decide.py",
        "if failure.cause in NEVER_RETRIED:",
        "if failure.cause in ():",
        ("unit/test_policy_decide.py",),
    ),
    Mutation(
        "a retry is granted past the total deadline",
        "domain/workloads/gang/conclude.py",
        "max(now, due) >= counted_from(job) + total_s",
        "now >= counted_from(job) + total_s",
        ("unit/test_total_deadline.py",),
    ),
    Mutation(
        "one good rank makes a gang succeed",
        "domain/workloads/gang/conclude.py",
        "succeeded == len(over.runs)",
        "succeeded",
        (WORLDS,),
    ),
    Mutation(
        "a failure hides a cancellation",
        "domain/workloads/gang/conclude.py",
        ("    if job.cancel_requested:\n        last"),
        ("    if job.cancel_requested and not over.runs:\n        last"),
        ("unit/test_controller.py",),
    ),
    Mutation(
        "retries are not counted",
        "domain/workloads/gang/conclude.py",
        "{**counters, counter: counters.get(counter, 0) + 1}",
        "{**counters}",
        ("unit/test_controller.py",),
    ),
    Mutation(
        "a retry does not wait for its back-off",
        "domain/policy/decide.py",
        "return max(failed_at + backoff_s, stopped)",
        "return stopped",
        ("unit/test_delay.py",),
    ),
    Mutation(
        "a back-off grows without end",
        "domain/policy/decide.py",
        ("    return min(base, cap)\n\n\ndef _jittered"),
        ("    return base\n\n\ndef _jittered"),
        ("unit/test_delay.py",),
    ),
    Mutation(
        "a rank that we stopped is blamed",
        "domain/classify.py",
        "and outcome.ended_by not in _STOPPED_BY_US",
        "and outcome.ended_by is not None",
        ("unit/test_classify.py",),
    ),
    Mutation(
        "a gang is placed in part",
        "domain/placement/fit.py",
        ("        if len(chosen) == shape.gang:\n            return chosen"),
        ("        if chosen:\n            return chosen"),
        ("unit/test_scheduling.py",),
    ),
    Mutation(
        "a paused queue goes on while it runs something",
        "domain/placement/scheduling.py",
        "if queue.paused:",
        "if queue.paused and not usage.jobs:",
        (WORLDS,),
    ),
    Mutation(
        "a queue runs one job too many",
        "domain/placement/quota.py",
        "usage.jobs >= most_jobs",
        "usage.jobs > most_jobs",
        ("unit/test_scheduling.py",),
    ),
    Mutation(
        "what a user was given in a round does not count against that user",
        "domain/placement/scheduling.py",
        "else (usage, self._used_by(key.queue, key.user)):",
        "else (usage,):",
        ("unit/test_users_of_queues.py",),
    ),
    Mutation(
        "what waits when a queue begins to limit its users is never told apart",
        "domain/placement/scheduling.py",
        "if each.key.queue in changed]:",
        "if not changed]:",
        ("unit/test_users_of_queues.py",),
    ),
    Mutation(
        "what a user runs already does not count against that user",
        "controller/placement.py",
        "Usage()).jobs += active.counts_for",
        "Usage()).jobs += 0",
        ("unit/test_users_of_queues.py",),
    ),
    Mutation(
        "a user's job that is left alone no longer counts against that user",
        "controller/placement.py",
        "found[key].jobs += 1",
        "found[key].jobs += 0",
        ("unit/test_users_of_queues.py",),
    ),
    Mutation(
        "a phase is tried once too often",
        "domain/lifecycle/engine.py",
        "tries >= options.max_retries",
        "tries > options.max_retries",
        ("unit/test_lifecycle_judge.py",),
    ),
    Mutation(
        "the share of retries is what it always was",
        "controller/placement.py",
        "retry_share=settings.retry_share",
        "retry_share=0.5",
        ("unit/test_controller.py",),
    ),
    Mutation(
        "a job set restarts once too often",
        "domain/workloads/jobset/failure.py",
        "limit.used >= limit.limit",
        "limit.used > limit.limit",
        ("unit/test_jobset.py",),
    ),
    Mutation(
        "all conditions of a rule must hold, not any",
        "domain/policy/matchers.py",
        "return not self.wanted.isdisjoint(self._there(failure))",
        "return self.wanted <= self._there(failure)",
        ("unit/test_policy_matchers.py",),
    ),
    Mutation(
        "what onUnknownEnd says comes after the built-in rules",
        "domain/policy/compiled.py",
        """            listed[place:place] = _listed(unknown_end)
        own = range(len(_listed(*first)), len(listed))
        if infrastructure is not None:
            listed += _listed(infrastructure)
""",
        """            pass
        own = range(len(_listed(*first)), len(listed))
        if infrastructure is not None:
            listed += _listed(infrastructure)
        if unknown_end is not None:
            listed += _listed(unknown_end)
""",
        _UNKNOWN,
    ),
    Mutation(
        "what ends on a machine whose clock is ahead ran for no time",
        "domain/job.py",
        "            began -= outcome.ended_at - at",
        "            began -= 0.0",
        ("unit/test_clock_jumps.py",),
    ),
    Mutation(
        "how long a job was at a loss is told by the clock of its machine",
        "controller/observations.py",
        "return min(max(told or now, run.status_since), now)",
        "return told or now",
        ("unit/test_controller_losses.py",),
    ),
    Mutation(
        "a new controller does not miss what was told to stop",
        "controller/observations.py",
        "began = run.started_at is not None and run.status not in RUN_TERMINAL",
        "began = run.status is RunStatus.RUNNING",
        _UNKNOWN,
    ),
    Mutation(
        "what onUnknownEnd says comes before the user's rules",
        "domain/policy/compiled.py",
        "listed[place:place] = _listed(unknown_end)",
        "listed[0:0] = _listed(unknown_end)",
        _UNKNOWN,
    ),
    Mutation(
        "rules without matchers come before what onUnknownEnd says",
        "domain/policy/compiled.py",
        "if rule.matches_all), len(listed))",
        "if rule.matches_all and i < 0), len(listed))",
        _UNKNOWN,
    ),
    Mutation(
        "a shortage under one rank has all of them run again, whatever became of them",
        "domain/classify.py",
        "return not outcome.started or not LOST.isdisjoint(outcome.conditions)",
        "return not LOST.isdisjoint(outcome.conditions)",
        _UNKNOWN,
    ),
    Mutation(
        "a rank that was lost before it started has all of them run again, whatever became of them",
        "domain/classify.py",
        "return outcome.lost or outcome.ended_by in {EndedBy.PREEMPTION, EndedBy.EVICTION}",
        "return outcome.ended_by in {EndedBy.PREEMPTION, EndedBy.EVICTION}",
        ("unit/test_classify.py",),
    ),
    Mutation(
        "what onUnknownEnd says is not asked about a drained job",
        "domain/workloads/gang/endings.py",
        "if drained and any(outcome.end_unknown for _, outcome in ended):",
        "if drained and not ended:",
        _UNKNOWN,
    ),
)
