"""Checks cases of job sets: read the manifest, reconcile after every step, compare what came of it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import ChildPhase, CreateChild
from holdfast.domain.workloads.jobset.children import job_labels, sort
from holdfast.domain.workloads.jobset.model import pod_host
from holdfast.domain.workloads.jobset.reconcile import dependencies_met, expected, started
from holdfast.domain.workloads.jobset.state import JobSetState
from tools.cases import jobset_validation, podjob, podjob_backoff
from tools.cases.jobset_manifest import jobset_manifest, read_jobset
from tools.cases.jobset_steps import do
from tools.cases.jobset_world import World
from tools.cases.results import Mismatch, Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tools.cases.results import Case

_GIVEN = {"completed", "failed", "status"}
"""Steps that state how a set stands, so that nothing must happen before."""
_ASSIGNED = {
    "placement": "exclusive topology of single pods is carried out by an engine that has pods on nodes; a set only "
    "asks for it, and no engine here has a leader pod whose node could be missing",
    "ownership": "Holdfast validates the whole job template when it is submitted, and runs no image it could lack: a "
    "job that was accepted can always be created, so there is no JobCreationFailed series to observe",
}


def check(case: Case) -> list[Mismatch]:
    """Check one case of any kind."""
    kind = str(case.get("kind"))
    if kind in _ASSIGNED:
        raise Skip(_ASSIGNED[kind])
    if kind == "job":
        return podjob.check(case)
    if kind == "backoff":
        return podjob_backoff.check(case)
    if kind == "validation" or case["expect"].get("rejected"):
        return jobset_validation.check(case)
    return _check_set(case)


def _check_set(case: Case) -> list[Mismatch]:
    world = _world(case)
    wrong: list[Mismatch] = []
    expect = dict(case["expect"])
    after = expect.pop("after", [])
    if not any(isinstance(event, dict) and event["do"] in _GIVEN for event in case["event"]):
        world.converge()
    for place, event in enumerate(case["event"]):
        do(world, event)
        wanted = after[place] if place < len(after) else None
        wrong += _compare(world, wanted or {}, f"after[{place}].")
    world.deletes_at_once = True
    wrong += _compare(world, {key: value for key, value in expect.items() if key in _BEFORE_THE_REST}, "")
    world.finish_deletions()
    world.converge()
    return wrong + _compare(world, {key: value for key, value in expect.items() if key not in _BEFORE_THE_REST}, "")


def _world(case: Case) -> World:
    manifest = jobset_manifest(case)
    world = World(read_jobset(manifest), manifest, _state(case["jobset"].get("status", {})))
    world.deletes_at_once = "finishDeletions" not in str(case["event"])
    return world


def _state(status: Mapping[str, Any]) -> JobSetState:
    def counts(name: str) -> dict[str, dict[int, int]]:
        return {group: dict(enumerate(values)) for group, values in status.get(name, {}).items()}

    state = JobSetState(
        restarts=status.get("restarts", 0),
        restarts_counted=status.get("restartsCountTowardsMax", 0),
        job_restarts=counts("jobRestarts"),
        job_restarts_counted=counts("jobRestartsCountTowardsMax"),
    )
    return evolve(
        state,
        in_place_current=status.get("currentInPlaceRestartAttempt"),
        in_place_previous=status.get("previousInPlaceRestartAttempt"),
    )


def _compare(world: World, expect: Mapping[str, Any], where: str) -> list[Mismatch]:
    wrong: list[Mismatch] = []
    for key, value in expect.items():
        if key not in _LOOKS:
            msg = f"expects {key} of a job set, which no checker knows"
            raise Skip(msg)
        got = _LOOKS[key](world, value)
        if got != value:
            wrong.append(Mismatch(f"{where}{key}", value, got))
    return wrong


def _conditions(world: World, wanted: list[dict[str, str]]) -> object:
    found = {one.type: one for one in world.state.conditions}
    got = []
    for one in wanted:
        have = found.get(one["type"])
        facts = (
            {"type": have.type, "status": str(have.status), "reason": have.reason, "message": have.message}
            if have
            else {}
        )
        got.append({key: facts.get(key) for key in one})
    return got


def _lists(world: World, wanted: Mapping[str, Any] | None, counts: Mapping[str, Mapping[int, int]]) -> object:
    if wanted is None:
        return counts or None
    got = {}
    for group in wanted:
        own = counts.get(group, {})
        got[group] = [own.get(index, 0) for index in range(world.spec.by_name[group].replicas)] if own else None
    return got


def _recreated(world: World, wanted: object) -> object:
    got = sorted(name for name, times in world.restarted.items() if times)
    if wanted == "all":
        return "all" if got == sorted(world.children) else got
    return wanted if isinstance(wanted, list) and sorted(wanted) == got else got


def _same_set(wanted: object, got: list[str]) -> object:
    return wanted if isinstance(wanted, list) and sorted(wanted) == sorted(got) else got


def _present(names: list[str], wanted: list[str], *, there: bool = True) -> list[str]:
    return [name for name in wanted if (name in names) is there]


def _group_statuses(world: World, wanted: Mapping[str, Mapping[str, int]]) -> object:
    found = {one.name: one for one in world.state.groups}
    return {name: {key: getattr(found[name], key) for key in fields} for name, fields in wanted.items()}


def _bucket(world: World, wanted: Mapping[str, str]) -> object:
    jobs = sort(world.spec, world.state, world.children.values())
    buckets = {child.name: bucket for bucket in ("active", "failed", "succeeded") for child in getattr(jobs, bucket)}
    return {name: buckets.get(name) for name in wanted}


def _labels(world: World, wanted: Mapping[str, str]) -> object:
    got: dict[str, str] = {}
    for child in world.children.values():
        order = CreateChild(child.name, child.group, child.index, child.global_index, child.restart, child.job_restart)
        labels = job_labels(world.spec, order)
        got.update(
            {
                key: labels.get(key, "")
                for key in wanted
                if labels.get(key) != got.get(key, labels.get(key)) or key not in got
            }
        )
    return got


def _global_index(world: World, wanted: Mapping[str, str]) -> object:
    found = {}
    for reference in wanted:
        group, _, index = reference.rpartition("/")
        found[reference] = str(world.spec.offsets[group] + int(index))
    return found


def _hosts(world: World, wanted: list[str]) -> object:
    every = {
        pod_host(world.spec, group.name, index, pod)
        for group in world.spec.replicated_jobs
        for index in range(group.replicas)
        for pod in range(group.job.parallelism)
    }
    return [host for host in wanted if host in every]


def _merged(world: World, _wanted: object) -> bool:
    current = {group.name: group.template for group in world.spec.replicated_jobs}
    return all(world.templates[name] == current[child.group] for name, child in world.children.items())


def _restarted_pods(world: World, _wanted: object) -> int:
    return sum(
        world.spec.by_name[child.group].job.parallelism
        for name, child in world.children.items()
        if world.restarted[name]
    )


def _attempts(world: World, _wanted: object) -> object:
    return {str(attempt): count for attempt, count in Counter(one.restart for one in world.children.values()).items()}


def _others_go_on(world: World, _wanted: object) -> bool:
    left = set(world.state.left_failed)
    others = [child for name, child in world.children.items() if name not in left]
    return not world.state.terminal and all(child.phase is ChildPhase.ACTIVE for child in others)


def _started(world: World, _wanted: object) -> bool:
    return all(started(group, world.given[group.name]) for group in world.spec.replicated_jobs)


def _dependencies(world: World, _wanted: object) -> bool:
    return all(dependencies_met(world.spec, group, world.given) for group in world.spec.replicated_jobs)


def _events(world: World, wanted: list[str]) -> object:
    got = [f"{event.type} {event.reason}" for event in world.events]
    return wanted if set(wanted) <= set(got) else got


def _pattern(world: World, wanted: str) -> str:
    return wanted if re.search(wanted, world.last_message) else world.last_message


def _job(world: World, wanted: Mapping[str, int]) -> object:
    sizes = {child.size for child in world.children.values()}
    return dict(wanted) if sizes == {(wanted["parallelism"], wanted["completions"])} else sizes


_BEFORE_THE_REST = {"requeueAfterSeconds", "statusUntouched", "statusUnchanged", "bucket"}
"""Compared before what is still going has gone and the set is looked at once more."""
_LOOKS: dict[str, Callable[[World, Any], object]] = {
    "restarts": lambda world, _: world.state.restarts,
    "restartsCountTowardsMax": lambda world, _: world.state.restarts_counted,
    "totalCounted": lambda world, _: world.state.counted,
    "terminalState": lambda world, _: world.state.terminal.value,
    "conditions": _conditions,
    "jobRestarts": lambda world, wanted: _lists(world, wanted, world.state.job_restarts),
    "jobRestartsCountTowardsMax": lambda world, wanted: _lists(world, wanted, world.state.job_restarts_counted),
    "recreated": _recreated,
    "untouched": lambda world, wanted: [
        name for name in wanted if name in world.children and not world.restarted[name]
    ],
    "events": _events,
    "matchedRule": lambda world, _: world.decisions[-1].rule,
    "matchedJob": lambda world, _: world.decisions[-1].job,
    "matchedJobIn": lambda world, wanted: wanted if world.decisions[-1].job in wanted else world.decisions[-1].job,
    "action": lambda world, _: str(world.decisions[-1].action),
    "bucket": _bucket,
    "jobsByRestartAttempt": _attempts,
    "jobFailureReason": lambda world, _: world.last_failure,
    "jobFailureMessagePattern": _pattern,
    "podsRestarted": _restarted_pods,
    "leftFailed": lambda world, wanted: _same_set(wanted, list(world.state.left_failed)),
    "othersContinue": _others_go_on,
    "replicatedJobsStatus": _group_statuses,
    "deleted": lambda world, wanted: _present(list(world.deleted), wanted),
    "kept": lambda world, wanted: _present(list(world.children), wanted),
    "jobsExpectedToSucceed": lambda world, _: expected(world.spec),
    "jobsCreated": lambda world, wanted: _same_set(wanted, list(world.children)),
    "jobCount": lambda world, _: len(world.children),
    "suspendedJobs": lambda world, _: sum(child.suspended for child in world.children.values()),
    "started": _started,
    "dependencySatisfied": _dependencies,
    "podTemplateMerged": _merged,
    "rejected": lambda _world, _wanted: False,
    "jobsetDeleted": lambda world, _: world.forgotten,
    "requeueAfterSeconds": lambda world, _: (
        None if world.wake_at is None else round(world.wake_at - world.looked_at, 3)
    ),
    "labelOnAllJobs": _labels,
    "globalIndex": _global_index,
    "globalReplicas": lambda world, _: str(world.spec.replicas),
    "podFQDN": _hosts,
    "statusUntouched": lambda world, _: world.state == JobSetState(),
    "statusUnchanged": lambda world, _: world.state.in_place_current is None and world.state.in_place_previous is None,
    "currentInPlaceRestartAttempt": lambda world, _: world.state.in_place_current,
    "previousInPlaceRestartAttempt": lambda world, _: world.state.in_place_previous or 0,
    "job": _job,
}
