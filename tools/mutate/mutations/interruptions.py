"""How warnings, interruptions, drains and limits of silence can be broken."""

from __future__ import annotations

from tools.mutate.mutation import Mutation

_HELD, _DRAINED, _PODS = ("unit/test_interruptions.py",), ("unit/test_drains.py",), ("unit/test_watched_pods.py",)
_PREEMPTED = ("unit/test_preemption.py",)
_GPUS = ("unit/test_device_discovery.py",)

MUTATIONS = (
    Mutation(
        "a second run is evicted while the first is still there",
        "domain/placement/pressure.py",
        "return not self.going and pressure.look",
        "return pressure.look",
        ("unit/test_pressure.py",),
    ),
    Mutation(
        "a run is evicted for a look at its machine from before the last one was gone",
        "domain/placement/pressure.py",
        "pressure.look >= self.look + LOOKS_AFTER and",
        "",
        ("unit/test_pressure.py",),
    ),
    Mutation(
        "what keeps to its request is evicted before what does not",
        "domain/placement/pressure.py",
        "return (over <= 0, candidate.priority,",
        "return (over > 0, candidate.priority,",
        ("unit/test_pressure.py",),
    ),
    Mutation(
        "a soft threshold acts at once",
        "domain/placement/pressure.py",
        "        if not lack.due:\n            continue\n",
        "",
        ("unit/test_pressure.py",),
    ),
    Mutation(
        "a machine that runs out of something gets new work",
        "domain/shortage.py",
        "return now >= self.next_at and not self.pressed",
        "return now >= self.next_at",
        ("unit/test_evictions.py",),
    ),
    Mutation(
        "what is evicted at once has all of its grace",
        "controller/publisher.py",
        "kept = evolve(kept, grace_s=min(kept.grace_s, HARD_GRACE_S))",
        "pass",
        ("unit/test_evictions.py",),
    ),
    Mutation(
        "an eviction costs a job nothing",
        "domain/workloads/gang/endings.py",
        "FAILURES = frozenset({Interruption.PREEMPT, *EVICTIONS})",
        "FAILURES = frozenset({Interruption.PREEMPT})",
        ("unit/test_evictions.py",),
    ),
    Mutation(
        "supervisors know no lead for drains",
        "engines/process/shim/supervisor/notice.py",
        'LEADING = frozenset({"preemption", "suspension", "drain"})',
        'LEADING = frozenset({"preemption", "suspension"})',
        ("integration/test_process_warnings.py",),
    ),
    Mutation(
        "whoever cancels waits for the warning",
        "executor/executor.py",
        " or (why in LEADING and reason not in LEADING)",
        "",
        _HELD,
    ),
    Mutation(
        "the controller forgets why a run was interrupted",
        "storage/sql/codec.py",
        "interrupted=None if interrupted is None else Interruption(interrupted)",
        "interrupted=None",
        ("unit/test_storage_codec.py",),
    ),
    Mutation(
        "a drain is judged like a failure",
        "domain/workloads/gang/endings.py",
        "_NOT_ITS_OWN = _TOLD | {",
        "_NOT_ITS_OWN = {",
        _DRAINED,
    ),
    Mutation(
        "a job that is released in time is held all the same",
        "domain/workloads/gang/conclude.py",
        "job = held(job, reason, now) if why is Interruption.HOLD else",
        "job = held(job, reason, now) if why is not Interruption.DRAIN else",
        _HELD,
    ),
    Mutation(
        "cordoned nodes get work",
        "controller/placement.py",
        "if place.key[1] not in cordons and",
        "if place.key and",
        _DRAINED,
    ),
    Mutation(
        "a cordon empties a node",
        "controller/evictions/drains.py",
        "for name, cordon in cordons.items() if cordon.drain}",
        "for name, cordon in cordons.items()}",
        _DRAINED,
    ),
    Mutation(
        "a cordon ends a drain",
        "domain/placement/cordon.py",
        "self.drain or known.drain",
        "self.drain",
        ("contract/test_store_races.py",),
    ),
    Mutation(
        "a drained pod failed by itself",
        "domain/workloads/kubejob/observed.py",
        "_DISRUPTED_BY = frozenset({EndedBy.PREEMPTION, EndedBy.DRAIN, EndedBy.EVICTION, EndedBy.LOST})",
        "_DISRUPTED_BY = frozenset({EndedBy.PREEMPTION, EndedBy.EVICTION, EndedBy.LOST})",
        _DRAINED,
    ),
    Mutation(
        "pods of a suspended set are not warned",
        "domain/workloads/kubejob/look.py",
        "why = Interruption.HOLD if self.record.suspended and",
        "why = Interruption.HOLD if not self.record.suspended and",
        _PODS,
    ),
    Mutation(
        "a pod that is stopped late is given up before its warning is over",
        "controller/workloads/pods.py",
        "warned_s = 0.0 if spec.warning is None else spec.warning.before_s",
        "warned_s = 0.0",
        _PODS,
    ),
    Mutation(
        "a run is idle if one of its GPUs is",
        "engines/process/shim/supervisor/idle.py",
        "any(map(self._is_busy, self._names))",
        "all(map(self._is_busy, self._names))",
        _GPUS,
    ),
    Mutation(
        "a GPU that cannot be asked is idle",
        "engines/process/shim/supervisor/idle.py",
        "ctypes.byref(handle)) != 0:\n            return True",
        "ctypes.byref(handle)) != 0:\n            return False",
        _GPUS,
    ),
    Mutation(
        "a job that is held is given up while its warning lasts",
        "domain/workloads/gang/flight.py",
        "timeout_s=warned_s + self._around.lease_s +",
        "timeout_s=self._around.lease_s +",
        _HELD,
    ),
    Mutation(
        "a preemption dates from when its programs had stopped",
        "domain/workloads/gang/endings.py",
        "failed_at=attempt.status_since)",
        "failed_at=first.ended_at)",
        _PREEMPTED,
    ),
    Mutation(
        "a preempted job is told that it is suspended",
        "controller/publisher.py",
        "Interruption.PREEMPT: StopReason.PREEMPTION",
        "Interruption.PREEMPT: StopReason.SUSPENSION",
        _PREEMPTED,
    ),
    Mutation(
        "a node is emptied of what is not on it",
        "controller/workloads/gangs.py",
        'any(node in {"", run.node} and',
        "any(node is not None and",
        _PREEMPTED,
    ),
    Mutation(
        "a door's jobs are run again after a preemption that no policy retries",
        "domain/workloads/gang/policies.py",
        "infrastructure=_built_in(spec, named, builtin)",
        "infrastructure=INFRASTRUCTURE",
        _PREEMPTED,
    ),
    Mutation(
        "what is lost is retried for a door's job whose policies do not",
        "domain/workloads/gang/policies.py",
        "NEVER_STARTED if named else LOST_ONLY",
        "LOST_ONLY",
        ("unit/test_armada_cases.py",),
    ),
)
