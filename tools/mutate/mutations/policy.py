"""How decisions, classification, placement and scheduling can be broken."""

from __future__ import annotations

from tools.mutate.mutation import WORLDS, Mutation

MUTATIONS = (
    Mutation(
        "a rule grants one retry too many",
        "domain/policy/decide.py",
        "if limit is not None and used >= limit:",
        "if limit is not None and used > limit:",
        ("unit/test_policy_decide.py",),
    ),
    Mutation(
        "the global cap grants one retry too many",
        "domain/policy/decide.py",
        "cap is None or history.total < cap or",
        "cap is None or history.total <= cap or",
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
        "domain/workloads/gang/conclusion.py",
        "max(at.now, due) < job.submitted_at + total_s",
        "at.now < job.submitted_at + total_s",
        ("unit/test_total_deadline.py",),
    ),
    Mutation(
        "one good rank makes a gang succeed",
        "domain/workloads/gang/conclusion.py",
        "if runs and all(run.outcome",
        "if runs and any(run.outcome",
        (WORLDS,),
    ),
    Mutation(
        "a failure hides a cancellation",
        "domain/workloads/gang/conclusion.py",
        ("    if job.cancel_requested:\n        started"),
        ("    if job.cancel_requested and not runs:\n        started"),
        ("unit/test_controller.py",),
    ),
    Mutation(
        "retries are not counted",
        "domain/workloads/gang/conclusion.py",
        "return counters if name is None else {**counters, name: counters.get(name, 0) + 1}",
        "return counters",
        ("unit/test_controller.py",),
    ),
    Mutation(
        "a retry does not wait for its back-off",
        "domain/delay.py",
        "return max(failed_at + backoff_s, stopped)",
        "return stopped",
        ("unit/test_delay.py",),
    ),
    Mutation(
        "a back-off grows without end",
        "domain/delay.py",
        ("    return min(base, cap)\n\n\ndef _jittered"),
        ("    return base\n\n\ndef _jittered"),
        ("unit/test_delay.py",),
    ),
    Mutation(
        "a rank that we stopped is blamed",
        "domain/classify.py",
        "and outcome.ended_by is not EndedBy.CASCADE",
        "and outcome.ended_by is not None",
        ("unit/test_classify.py",),
    ),
    Mutation(
        "a gang is placed in part",
        "domain/placement.py",
        ("        if len(chosen) == shape.gang:\n            return chosen"),
        ("        if chosen:\n            return chosen"),
        ("unit/test_scheduling.py",),
    ),
    Mutation(
        "a paused queue goes on while it runs something",
        "domain/scheduling.py",
        "if queue.paused:",
        "if queue.paused and not usage.jobs:",
        (WORLDS,),
    ),
    Mutation(
        "a queue runs one job too many",
        "domain/scheduling.py",
        "usage.jobs >= queue.max_running_jobs",
        "usage.jobs > queue.max_running_jobs",
        ("unit/test_scheduling.py",),
    ),
    Mutation(
        "a phase is tried once too often",
        "domain/lifecycle/judge.py",
        "tries >= options.max_retries",
        "tries > options.max_retries",
        ("unit/test_lifecycle_judge.py",),
    ),
    Mutation(
        "a job set restarts once too often",
        "domain/workloads/jobset/rules.py",
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
)
