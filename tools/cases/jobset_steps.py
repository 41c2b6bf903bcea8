"""Does the steps of a job set's case in its world."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import Child, ChildPhase
from holdfast.domain.workloads.jobset import state as records
from holdfast.domain.workloads.jobset.reconcile import InPlace
from holdfast.domain.workloads.jobset.state import GroupStatus
from tools.cases.jobset_manifest import group_name, read_jobset
from tools.cases.jobset_validation import check_change, updated
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tools.cases.jobset_world import World

_PROGRAM = re.compile(r"exit (\d+) if (.+) else exit (\d+)")
_CLAUSE = re.compile(r"([a-z-]+)==(\d+)")


def do(world: World, event: Mapping[str, Any] | list[Mapping[str, Any]]) -> None:
    """Do one step, or several that become visible at once, and let the set converge."""
    for step in event if isinstance(event, list) else [event]:
        name = step["do"]
        if name not in _STEPS:
            msg = f"no checker knows the event {name!r} of a job set"
            raise Skip(msg)
        _STEPS[name](world, step)
    world.converge()
    world.now += 1


def _fail(world: World, step: Mapping[str, Any]) -> None:
    for name in world.named(step["job"]):
        world.fail(name, step, group_name(step.get("replicatedJob", "")) or world.spec.replicated_jobs[0].name)


def _complete(world: World, step: Mapping[str, Any]) -> None:
    for name in world.named(step["job"]):
        world.change(name, phase=ChildPhase.SUCCEEDED, active_pods=0, ready_pods=0)


def _ready(world: World, step: Mapping[str, Any]) -> None:
    for name in world.named(step["job"]):
        pods = world.spec.by_name[world.children[name].group].ready_pods
        world.change(name, active_pods=pods, ready_pods=pods)


def _active(world: World, step: Mapping[str, Any]) -> None:
    for name in world.named(step["job"]):
        world.change(name, active_pods=world.spec.by_name[world.children[name].group].job.parallelism)


def _condition(world: World, step: Mapping[str, Any]) -> None:
    if step["type"] != "FailureTarget":
        msg = f"no checker knows the condition {step['type']!r} of a job"
        raise Skip(msg)
    for name in world.named(step["job"]):
        world.change(name, certain=step["status"] == "True")


def _pod_exit(world: World, step: Mapping[str, Any]) -> None:
    result = ContainerResult(step["exitCode"], name=step.get("container", "main"))
    world.end_pod(step["pod"], result, None)


def _pod_condition(world: World, step: Mapping[str, Any]) -> None:
    world.end_pod(step["pod"], None, (step["type"], step["status"]))


def _repeat(world: World, step: Mapping[str, Any]) -> None:
    for _ in range(step["times"]):
        do(world, step["step"])


def _run(world: World, step: Mapping[str, Any]) -> None:
    match = _PROGRAM.fullmatch(step["program"])
    clauses = _CLAUSE.findall(match[2]) if match else []
    if match is None or not clauses:
        msg = f"no checker runs the program {step['program']!r}"
        raise Skip(msg)
    wanted = {(name, int(value)) for name, value in clauses}

    def exit_code(child: Child) -> int:
        facts = {
            ("job-index", child.index),
            ("job-global-index", child.global_index),
            ("restart-attempt", child.restart),
            ("job-restart-attempt", child.job_restart),
        }
        return int(match[1] if wanted <= facts else match[3])

    world.converge()
    world.run(exit_code)


def _update(world: World, step: Mapping[str, Any]) -> None:
    _change(world, updated(world.manifest, step))


def _suspend(world: World, *, value: bool) -> None:
    _change(world, updated(world.manifest, {"path": "spec.suspend", "value": value}))


def _change(world: World, manifest: dict[str, Any]) -> None:
    if problems := check_change(world.manifest, manifest, finished=bool(world.state.terminal)):
        msg = f"the change is refused: {problems}"
        raise ValueError(msg)
    world.manifest, world.spec = manifest, read_jobset(manifest)


def _mutate_template(world: World, step: Mapping[str, Any]) -> None:
    manifest = copy.deepcopy(world.manifest)
    for group in manifest["spec"]["replicatedJobs"]:
        pod = group["template"]["spec"]["template"]
        for key, value in step.items():
            if key in {"labels", "annotations"}:
                pod.setdefault("metadata", {})[key] = value
            elif key != "do":
                pod["spec"][key] = value
    _change(world, manifest)


def _ended(world: World, step: Mapping[str, Any]) -> None:
    end = records.completed if step["do"] == "completed" else _failed
    world.state = end(world.state, step["at"]).state
    world.now = step["at"]


def _failed(state: Any, now: float) -> records.Transition:  # noqa: ANN401 - as records.completed
    return records.failed(state, *records.FAILED_JOBS, now)


def _now(world: World, step: Mapping[str, Any]) -> None:
    world.now = step["at"]


def _status(world: World, step: Mapping[str, Any]) -> None:
    """Remember a replicated job's status as the case gives it, in place of what its jobs would show."""
    given = GroupStatus(step["replicatedJob"], step["ready"], step["succeeded"], step["failed"])
    groups = [given] + [GroupStatus(name) for name in world.spec.by_name if name != given.name]
    world.state = evolve(world.state, groups=tuple(groups))
    world.given = {one.name: one for one in groups}


def _pod_attempts(world: World, step: Mapping[str, Any]) -> None:
    world.in_place = InPlace(tuple(step["attempts"]), step.get("containerRestarts", 0))


def _finish_deletions(world: World, step: Mapping[str, Any]) -> None:
    world.finish_deletions(step.get("count"))


_STEPS: dict[str, Callable[[World, Mapping[str, Any]], None]] = {
    "observe": lambda _world, _step: None,
    "submit": lambda _world, _step: None,
    "jobFailed": _fail,
    "jobComplete": _complete,
    "jobReady": _ready,
    "jobActive": _active,
    "jobCondition": _condition,
    "finishDeletions": _finish_deletions,
    "podExit": _pod_exit,
    "podFailedWithCondition": _pod_condition,
    "repeat": _repeat,
    "run": _run,
    "update": _update,
    "suspend": lambda world, _step: _suspend(world, value=True),
    "resume": lambda world, _step: _suspend(world, value=False),
    "mutatePodTemplate": _mutate_template,
    "completed": _ended,
    "failed": _ended,
    "now": _now,
    "status": _status,
    "podAttempts": _pod_attempts,
}
