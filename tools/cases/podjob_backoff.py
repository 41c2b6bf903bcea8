"""Checks cases of a Job's back-off: single delays, batches of endings, and whole runs in virtual time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult
from holdfast.domain.policy.model import Backoff
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.model import BackoffRecord, KubeJobSpec, KubeJobState, Pod, PodPhase
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from holdfast.domain.workloads.kubejob.tally import remaining_s, updated
from tools.cases.jobset_manifest import read_job
from tools.cases.podjob import started_by, stopped_by
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.cases.results import Case

_ENDING = re.compile(r"([FS])@(-?\d+)(ms|s)?")
_PROGRAM = re.compile(r"sleep (\d+); exit (\d+)")
_LONG_ENOUGH = 10_000
"""More looks than any of these runs needs."""


def check(case: Case) -> list[Mismatch]:
    """Check one case."""
    settings = case["jobset"]["job"]["backoff"]
    backoff = Backoff(initial_s=settings["baseSeconds"], max_s=settings["maxSeconds"], multiplier=2.0)
    steps = {step["do"]: step for step in case["event"]}
    if "run" in steps:
        return _check_run(case, backoff, steps["run"]["program"])
    record, elapsed = _record(steps), steps.get("sinceLastFailure", {}).get("seconds", 0)
    got = {
        "remainingSeconds": remaining_s(backoff, record.failures, elapsed_s=elapsed),
        "failuresAfterLastSuccess": record.failures,
    }
    if unknown := case["expect"].keys() - got.keys():
        msg = f"expects {', '.join(sorted(unknown))} of a back-off, which no checker knows"
        raise Skip(msg)
    return [Mismatch(key, value, got[key]) for key, value in case["expect"].items() if got[key] != value]


def _record(steps: Mapping[str, Any]) -> BackoffRecord:
    if "consecutiveFailures" in steps:
        return BackoffRecord(steps["consecutiveFailures"]["count"])
    if "podsFailTogether" in steps:
        return updated(BackoffRecord(), [0.0] * steps["podsFailTogether"]["count"], [])
    if "indexFailures" in steps:
        one = steps["indexFailures"]
        return BackoffRecord(one["counted"] + one["ignored"] + one.get("plusThis", 0))
    if "timeline" in steps:
        endings = [_ENDING.fullmatch(text) for text in steps["timeline"]["events"]]
        if all(endings):
            parts = [(one[1], float(one[2])) for one in endings if one]
            failed, succeeded = ([at for kind, at in parts if kind == which] for which in "FS")
            return updated(BackoffRecord(), failed, succeeded)
    msg = f"no checker knows the events {', '.join(steps)} of a back-off"
    raise Skip(msg)


@dataclass(slots=True)
class _Run:
    """A Job whose pods all run the same program, in virtual time."""

    spec: KubeJobSpec
    lasts_s: float
    exit_code: int
    now: float = 0.0
    state: KubeJobState = field(default_factory=KubeJobState)
    pods: dict[str, Pod] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)
    waves: list[float] = field(default_factory=list)

    def until_it_ends(self) -> None:
        """Go from event to event."""
        for _ in range(_LONG_ENOUGH):
            synced = reconcile(self.spec, self.state, list(self.pods.values()), self.now)
            self.state = synced.state
            if self.state.finished:
                return
            for name in stopped_by(synced):
                del self.pods[name]
            for order in started_by(synced):
                name = f"pod-{len(self.ends)}"
                self.pods[name] = Pod(name=name, index=order.index, index_failures=order.index_failures)
                self.ends[name] = self.now + self.lasts_s
            if started_by(synced):
                self.waves.append(self.now)
            due = [at for name, at in self.ends.items() if name in self.pods and not self.pods[name].ended]
            due += [] if synced.wake_at is None else [synced.wake_at]
            self.now = min((at for at in due if at > self.now), default=self.now)
            self._end_pods()

    def _end_pods(self) -> None:
        phase = PodPhase.FAILED if self.exit_code else PodPhase.SUCCEEDED
        result = (ContainerResult(self.exit_code),)
        for name, pod in self.pods.items():
            if self.ends[name] <= self.now and not pod.ended:
                self.pods[name] = evolve(pod, phase=phase, containers=result, finished_at=self.ends[name])


def _check_run(case: Case, backoff: Backoff, program: str) -> list[Mismatch]:
    match = _PROGRAM.fullmatch(program)
    if match is None:
        msg = f"no checker runs the program {program!r}"
        raise Skip(msg)
    run = _Run(evolve(read_job(case), backoff=backoff), float(match[1]), int(match[2]))
    run.until_it_ends()
    final = run.state.finished
    gaps = [after - before - run.lasts_s for before, after in zip(run.waves, run.waves[1:], strict=False)]
    got: dict[str, object] = {
        "waveGapsSeconds": gaps,
        "failed": run.state.failed,
        "conditions": [{"type": final.type, "status": "True", "reason": final.reason}] if final else [],
    }
    expect = dict(case["expect"])
    about = expect.pop("totalSecondsApprox", run.now)
    wrong = [Mismatch(key, value, got.get(key)) for key, value in expect.items() if got.get(key) != value]
    tolerance = 0.02
    if abs(run.now - about) > about * tolerance:
        wrong.append(Mismatch("totalSecondsApprox", about, run.now))
    return wrong
