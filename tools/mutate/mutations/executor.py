"""How the executor can be broken: its lease, and what it starts, stops and forgets."""

from __future__ import annotations

from tools.mutate.mutation import WORLDS, Mutation

MUTATIONS = (
    Mutation(
        "an overtaken answer is acted on",
        "executor/executor.py",
        "if response.sequence < self._sequence:",
        "if response.sequence < 0:",
        ("unit/test_controller_faults.py",),
    ),
    Mutation(
        "the lease counts from the answer",
        "executor/executor.py",
        "self._answered_at = asked_at",
        "self._answered_at = self._clock.steady()",
        ("unit/test_controller_faults.py",),
    ),
    Mutation(
        "an answer that took longer than the lease is acted on",
        "executor/executor.py",
        ("if self._is_cut_off():\n            self._fence"),
        ("if self._is_cut_off() and not response:\n            self._fence"),
        ("unit/test_controller_faults.py",),
    ),
    Mutation(
        "a lease is never over",
        "executor/executor.py",
        "self._clock.steady() - self._answered_at > self._lease_s",
        "self._clock.steady() < self._answered_at",
        ("unit/test_controller.py",),
    ),
    Mutation(
        "a new life has a lease before it is answered",
        "executor/executor.py",
        'self._answered_at = float("-inf")',
        "self._answered_at = clock.steady()",
        ("unit/test_controller.py", "unit/test_controller_faults.py"),
    ),
    Mutation(
        "what nobody knows goes on",
        "executor/executor.py",
        "elif self._is_worth_telling(seen, 0.0, StopReason.LOST):",
        "elif seen.phase is None:",
        ("unit/test_controller.py",),
    ),
    Mutation(
        "a lost lease spares what is being stopped",
        "executor/executor.py",
        "running = [uid for uid, seen in observed.items() if seen.phase is not RunPhase.FINISHED]",
        "running = [uid for uid, seen in observed.items() if seen.phase is RunPhase.RUNNING]",
        ("unit/test_controller_faults.py", "unit/test_controller.py"),
    ),
    Mutation(
        "a stop that comes before the start is not told of",
        "executor/executor.py",
        ("                    self._never_started[uid] = self._not_started(order, wanted.stop)\n"),
        ("                    pass\n"),
        ("unit/test_controller_repeats.py",),
    ),
    Mutation(
        "results are forgotten before they are safe",
        "executor/executor.py",
        ("        try:\n            response ="),
        ("        self._engine.forget(list(observed))\n        try:\n            response ="),
        (WORLDS,),
    ),
)
