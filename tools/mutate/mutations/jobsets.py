"""How job sets and the Jobs they are made of can be broken: their budgets, their pace, their counters."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

MUTATIONS = (
    Mutation(
        "what was healthy for a while keeps its pace",
        "domain/workloads/jobset/failure.py",
        "times = 1 if lasted >= pace.reset_after_s else before.times + (lasted <= pace.within_s)",
        "times = before.times + (lasted <= pace.within_s)",
        ("unit/test_jobset_pace.py",),
    ),
    Mutation(
        "uncounted restarts are delayed however long each attempt lasted",
        "domain/workloads/jobset/failure.py",
        "before.times + (lasted <= pace.within_s)",
        "before.times + 1",
        ("unit/test_jobset_pace.py",),
    ),
    Mutation(
        "jobs that fail at one moment delay each other",
        "domain/workloads/jobset/failure.py",
        "else:\n            delay = self._paced(key, one.child",
        "else:\n            delay = self._paced(whole, one.child",
        ("unit/test_jobset_pace.py",),
    ),
    Mutation(
        "a policy's container is never the one that a pod's template names",
        "domain/workloads/kubejob/programs.py",
        "classify(named(run.outcome, container), ",
        "classify(run.outcome, ",
        ("unit/test_never_matched.py",),
    ),
    Mutation(
        "an exit code that never matches is not warned of",
        "dialects/native/matchers.py",
        "if 0 in named:",
        "if named == {0}:",
        ("unit/test_never_matched.py",),
    ),
    Mutation(
        "jobs left failed stay so when their replicated job restarts",
        "domain/workloads/jobset/failure.py",
        "            self._forget(child.group)\n",
        "",
        ("unit/test_jobset.py",),
    ),
    Mutation(
        "the event of a set's end says nothing of why",
        "controller/workloads/jobsets.py",
        "row.ended, reason, message)",
        'row.ended, "", message)',
        ("unit/test_controller_pod_decisions.py",),
    ),
    Mutation(
        "a job made of pods has started anew with each of them",
        "domain/workloads/kubejob/standing.py",
        "started_at=job.started_at or now",
        "started_at=now",
        ("unit/test_controller_pod_decisions.py",),
    ),
    Mutation(
        "a pod that may take any time to start is given up",
        "domain/workloads/kubejob/programs.py",
        "wait_s = self.facts.patience.start_s",
        "wait_s = self.facts.patience.start_s or 600.0",
        ("unit/test_controller_pod_decisions.py",),
    ),
    Mutation(
        "of several pods that fail at once each is decided as if it were the only one",
        "domain/workloads/kubejob/decisions.py",
        "used += verdict.action is not PodAction.IGNORE",
        "used += 0",
        ("unit/test_kubejob.py",),
    ),
    Mutation(
        "a program that can never start is not started again in its pod, as upstream does",
        "domain/workloads/kubejob/restarts.py",
        "evolve(failure, cause=Cause.UNKNOWN)",
        "failure",
        ("unit/test_controller_pod_decisions.py",),
    ),
    Mutation(
        "why a policy did not retry a pod is forgotten",
        "domain/workloads/kubejob/decisions.py",
        "considered=(asked, *decision.considered)",
        "considered=decision.considered",
        ("unit/test_controller_pod_decisions.py",),
    ),
    Mutation(
        "ignored failures of an index do not delay it",
        "domain/workloads/kubejob/reconcile.py",
        "counted + ignored, elapsed_s",
        "counted, elapsed_s",
        ("unit/test_kubejob.py",),
    ),
    Mutation(
        "a pod that was going when its Job was suspended counts as failed",
        "domain/workloads/kubejob/reconcile.py",
        "state.counted | going | frozenset(stopping)",
        "state.counted | frozenset(stopping)",
        ("unit/test_kubejob.py",),
    ),
    Mutation(
        "what still works when a Job has failed is not counted",
        "domain/workloads/kubejob/reconcile.py",
        "state = evolve(state, failed=state.failed + len(working))",
        "pass",
        ("unit/test_kubejob.py",),
    ),
    Mutation(
        "what still works when a Job is complete counts as failed",
        "domain/workloads/kubejob/reconcile.py",
        "    if ending.failed:\n        state = evolve(state, failed",
        "    if working:\n        state = evolve(state, failed",
        ("unit/test_kubejob.py",),
    ),
    Mutation(
        "a pod that succeeded just after its Job had failed counts as failed",
        "domain/workloads/kubejob/tally.py",
        "    if state.stopped_at_end:\n        new = _as_they_ended(spec, new, pods)\n",
        "",
        ("unit/test_kubejob.py",),
    ),
)
