"""Checks cases of Kubernetes Jobs: pods are observed, the Job is looked at, its status is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.indexes import format_indexes, parse_indexes
from holdfast.domain.workloads.kubejob.model import KubeJobState, Pod, PodPhase, StartPod, StopPod
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from tools.cases.jobset_manifest import read_job
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.workloads.kubejob.model import JobResult, KubeJobSpec
    from tools.cases.results import Case

NOW = 1_000_000.0
LONG_AGO = NOW - 86_400.0
_KNOWN = {"failed", "active", "succeeded", "terminating", "ready", "completedIndexes", "failedIndexes"}


def stopped_by(result: JobResult) -> tuple[str, ...]:
    """List the pods a look stops, by name."""
    return tuple(order.name for order in result.orders if isinstance(order, StopPod))


def started_by(result: JobResult) -> tuple[StartPod, ...]:
    """List the pods a look starts."""
    return tuple(order for order in result.orders if isinstance(order, StartPod))


class JobWorld:
    """A Job whose pods do what a case says."""

    def __init__(self, spec: KubeJobSpec) -> None:
        """Start with nothing observed."""
        self.spec = spec
        self.state = KubeJobState(
            started_at=None if spec.suspend else LONG_AGO if spec.active_deadline_s is None else NOW
        )
        self.pods: list[Pod] | None = None
        self.last: JobResult | None = None

    def look(self) -> None:
        """Look at the Job once."""
        pods = self._working() if self.pods is None else self.pods
        self.last = reconcile(self.spec, self.state, pods, NOW)
        self.state = self.last.state
        self.pods = [pod for pod in pods if pod.name not in stopped_by(self.last)]

    def _working(self) -> list[Pod]:
        """Return the pods of a Job nothing is said about: as many as should work, where there is work."""
        if self.spec.suspend:
            return []
        free = (index for index in range(10**6) if index not in self.state.completed_indexes)
        return [
            Pod(name=f"mypod-{place}", index=next(free) if self.spec.indexed else None, ready=True)
            for place in range(self.spec.parallelism)
        ]


def check(case: Case) -> list[Mismatch]:
    """Check one case."""
    event, expect = case["event"], case["expect"]
    steps = [step for one in event for step in (one if isinstance(one, list) else [one])]
    if steps and steps[0]["do"] == "failedIndexes":
        text = format_indexes(steps[0]["set"])
        return [] if text == expect["failedIndexes"] else [Mismatch("failedIndexes", expect["failedIndexes"], text)]
    world = JobWorld(read_job(case))
    for step in steps:
        _do(world, step)
    world.look()
    conditions = expect.get("conditions")
    if any(one["type"] in {"Failed", "Complete"} for one in conditions or ()) and not world.state.finished:
        world.look()
    return [*_compare(world, expect), *_compare_conditions(world, conditions)]


def _do(world: JobWorld, step: Mapping[str, Any]) -> None:
    match step["do"]:
        case "podsObserved":
            world.pods = [pod_of(pod, place) for place, pod in enumerate(step["pods"])]
        case "activeFor":
            world.state = evolve(world.state, started_at=NOW - step["seconds"])
        case "succeededIndexes":
            done = parse_indexes(step["set"], world.spec.completions or 0)
            world.state = evolve(world.state, completed_indexes=done, succeeded=len(done))
        case other:
            msg = f"no checker knows the event {other!r} of a Job"
            raise Skip(msg)


def pod_of(facts: Mapping[str, Any], place: int) -> Pod:
    """Make a pod of a case's facts; one that failed did so long ago, unless it was deleted just now."""
    containers = [(one, False) for one in facts.get("containers", ())]
    containers += [(one, True) for one in facts.get("initContainers", ())]
    return Pod(
        name=facts.get("name", f"mypod-{place}"),
        phase=PodPhase(facts["phase"]),
        index=facts.get("index"),
        ready=bool(facts.get("ready")),
        deleting=any(facts.get(word) for word in ("deleting", "terminating", "deletionTimestamp")),
        containers=tuple(ContainerResult(one.get("exitCode"), name=one["name"], init=init) for one, init in containers),
        conditions=frozenset(_condition(condition) for condition in facts.get("conditions", ())),
        container_restarts=facts.get("containerRestarts", 0),
        index_failures=facts.get("indexFailureCount", 0),
        index_ignored=facts.get("indexIgnoredFailureCount", 0),
        finished_at=NOW if facts.get("deletedNow") else LONG_AGO,
    )


def _condition(facts: str | Mapping[str, Any]) -> tuple[str, str]:
    return (facts, "True") if isinstance(facts, str) else (facts["type"], facts.get("status", "True"))


def _compare(world: JobWorld, expect: Mapping[str, Any]) -> list[Mismatch]:
    state = world.state
    got: dict[str, object] = {
        "failed": state.failed,
        "active": state.active,
        "succeeded": state.succeeded,
        "terminating": state.terminating,
        "ready": state.ready,
        "completedIndexes": format_indexes(state.completed_indexes),
        "failedIndexes": format_indexes(state.failed_indexes),
    }
    if world.last is not None and not started_by(world.last) and world.last.wake_at is not None:
        got["replacement"] = "delayed by back-off"
    if unknown := expect.keys() - _KNOWN - {"conditions", "replacement"}:
        msg = f"expects {', '.join(sorted(unknown))} of a Job, which no checker knows"
        raise Skip(msg)
    wanted = {key: value for key, value in expect.items() if key != "conditions"}
    return [Mismatch(key, value, got.get(key)) for key, value in wanted.items() if got.get(key) != value]


def _compare_conditions(world: JobWorld, expected: Sequence[Mapping[str, Any]] | None) -> list[Mismatch]:
    if expected is None:
        return []
    holding = [one for one in world.state.conditions if one.status]
    got = [{"type": one.type, "status": "True", "reason": one.reason, "message": one.message} for one in holding]
    same = len(got) == len(expected) and all(
        wanted.items() <= one.items() for wanted, one in zip(expected, got, strict=True)
    )
    return [] if same else [Mismatch("conditions", expected, got)]
