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
        "controller/workloads/pods.py",
        "outcome = named(run.outcome, plan.program.container)",
        "outcome = run.outcome",
        ("unit/test_never_matched.py",),
    ),
    Mutation(
        "an exit code that never matches is not warned of",
        "dialects/native/matchers.py",
        "codes.operator is ExitCodeOperator.IN and 0 in codes.values",
        "codes.operator is ExitCodeOperator.IN and codes.values == {0}",
        ("unit/test_never_matched.py",),
    ),
)
