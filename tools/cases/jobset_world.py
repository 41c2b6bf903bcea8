"""A job set whose child jobs do what a case says: reconciled after every step, with its orders carried out at once.

Deletions are over at once too, unless the case ends them itself.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.domain.failure import ContainerResult
from holdfast.domain.record import evolve
from holdfast.domain.workloads.children import (
    Child,
    ChildPhase,
    CreateChild,
    DeleteChild,
    Forget,
    ResizeChild,
    ResumeChild,
    SuspendChild,
)
from holdfast.domain.workloads.jobset.model import job_name, pod_name
from holdfast.domain.workloads.jobset.reconcile import ReconcileInput, converge
from holdfast.domain.workloads.jobset.state import JobSetState
from holdfast.domain.workloads.kubejob.model import KubeJobState, Pod, PodPhase
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from tools.cases.podjob import stopped_by
from tools.cases.results import Skip

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.workloads.children import Order
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.reconcile import InPlace
    from holdfast.domain.workloads.jobset.state import GroupStatus, SetDecision, SetEvent

NOW = 1_000_000.0
_SHORT_NAME = re.compile(r"(.+)/(\d+)")
_MOST_ROUNDS = 1000


@dataclass(slots=True)
class World:
    """A job set and its jobs."""

    spec: JobSetSpec
    manifest: dict[str, Any]
    state: JobSetState = field(default_factory=JobSetState)
    deletes_at_once: bool = True
    now: float = NOW
    looked_at: float = NOW
    children: dict[str, Child] = field(default_factory=dict)
    pods: dict[str, KubeJobState] = field(default_factory=dict)
    templates: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    restarted: Counter[str] = field(default_factory=Counter)
    """How often each job was deleted and created again."""
    deleted: set[str] = field(default_factory=set)
    forgotten: bool = False
    events: list[SetEvent] = field(default_factory=list)
    decisions: list[SetDecision] = field(default_factory=list)
    last_failure: str = ""
    """Why the last job failed, and its message."""
    last_message: str = ""
    wake_at: float | None = None
    in_place: InPlace | None = None
    given: dict[str, GroupStatus] = field(default_factory=dict)
    """Statuses a case gives outright."""

    def converge(self) -> None:
        """Look at the set and do what it asks for, until it asks for nothing more."""
        for _ in range(_MOST_ROUNDS):
            self.looked_at = self.now
            look = ReconcileInput(self.now, in_place=self.in_place)
            passed = converge(self.spec, self.state, list(self.children.values()), look)
            self.state, self.wake_at = passed.state, passed.wake_at
            self.events += passed.events
            self.decisions += passed.decisions
            for order in passed.orders:
                self._carry_out(order)
            if self.deletes_at_once:
                self.finish_deletions()
            if not passed.orders or self.forgotten:
                return
        msg = "the set never converges"
        raise RuntimeError(msg)

    def _carry_out(self, order: Order) -> None:
        if isinstance(order, CreateChild):
            self._create(order)
        elif isinstance(order, DeleteChild):
            self.children[order.name] = evolve(self.children[order.name], deleting_since=self.now)
        elif isinstance(order, SuspendChild):
            self.change(order.name, suspended=True)
        elif isinstance(order, ResumeChild):
            self.change(order.name, suspended=False)
            self.templates[order.name] = self.spec.by_name[order.group].template
        elif isinstance(order, ResizeChild):
            self.change(order.name, size=(order.parallelism, order.completions))
        elif isinstance(order, Forget):
            self.forgotten = True

    def _create(self, order: CreateChild) -> None:
        group = self.spec.by_name[order.group]
        if order.name in self.deleted:
            self.restarted[order.name] += 1
        self.pods[order.name] = KubeJobState()
        self.templates[order.name] = group.template
        self.children[order.name] = Child(
            name=order.name,
            group=order.group,
            index=order.index,
            global_index=order.global_index,
            restart=order.restart,
            job_restart=order.job_restart,
            suspended=order.suspended,
            size=(group.job.parallelism, group.job.completions),
        )

    def finish_deletions(self, count: int | None = None) -> None:
        """Let jobs that were told to go be gone."""
        going = [name for name, child in self.children.items() if child.deleting_since is not None]
        for name in going[:count]:
            del self.children[name]
            self.deleted.add(name)

    def change(self, name: str, **fields: Any) -> None:  # noqa: ANN401 - any field of a child
        """Change what is observed of a job."""
        self.children[name] = evolve(self.children[name], **fields)

    def named(self, reference: str) -> list[str]:
        """List the jobs a case means: a name, ``group/index``, ``group/*`` or ``all``."""
        if reference == "all":
            return list(self.children)
        if reference.endswith("/*"):
            return [name for name, child in self.children.items() if child.group == reference[:-2]]
        short = _SHORT_NAME.fullmatch(reference)
        return [job_name(self.spec.name, short[1], int(short[2])) if short else reference]

    def fail(self, name: str, step: Mapping[str, Any], group: str) -> None:
        """Let a job fail the way a case says."""
        at = self.now - 3600.0 * step["hoursAgo"] if "hoursAgo" in step else self.now + step.get("at", 0.0)
        if name not in self.children:
            self.children[name] = Child(
                name=name, group=group, global_index=self.spec.offsets[group], restart=self.state.restarts
            )
        self.last_failure, self.last_message = step["reason"], step.get("message", "")
        self.change(
            name,
            phase=ChildPhase.FAILED,
            reason=step["reason"],
            message=step.get("message", ""),
            failed_at=at,
            active_pods=0,
            ready_pods=0,
        )

    def end_pod(self, reference: str, container: ContainerResult | None, condition: tuple[str, str] | None) -> None:
        """End one pod of a job, and look at that Job until it has settled."""
        group, index, number = reference.split("/")
        name = job_name(self.spec.name, group, int(index))
        job = self.spec.by_name[group].job
        pods = [
            Pod(name=pod_name(self.spec.name, group, int(index), place), index=place if job.indexed else None)
            for place in range(job.parallelism)
        ]
        failed = container is None or bool(container.exit_code)
        pods[int(number)] = evolve(
            pods[int(number)],
            phase=PodPhase.FAILED if failed else PodPhase.SUCCEEDED,
            containers=(container,) if container else (),
            conditions=frozenset({condition} if condition else ()),
            finished_at=self.now,
        )
        self._look_at_job(name, pods)

    def succeed(self, name: str) -> None:
        """Let all pods of a job succeed."""
        child = self.children[name]
        job = self.spec.by_name[child.group].job
        done = (ContainerResult(0),)
        pods = [
            Pod(name=f"{name}-{place}", index=place, phase=PodPhase.SUCCEEDED, containers=done, finished_at=self.now)
            for place in range(job.completions or 1)
        ]
        self._look_at_job(name, pods)

    def _look_at_job(self, name: str, pods: list[Pod]) -> None:
        job, state = self.spec.by_name[self.children[name].group].job, self.pods[name]
        for _ in range(3):
            synced = reconcile(job, state, pods, self.now)
            state = synced.state
            pods = [pod for pod in pods if pod.name not in stopped_by(synced)]
        self.pods[name] = state
        final = state.finished
        if final is None:
            return
        if final.type == "Complete":
            self.change(name, phase=ChildPhase.SUCCEEDED)
            return
        self.last_failure, self.last_message = final.reason, final.message
        self.change(name, phase=ChildPhase.FAILED, reason=final.reason, message=final.message, failed_at=self.now)

    def run(self, exit_code_of: Callable[[Child], int]) -> None:
        """Run a program in every job until the set has ended or nothing runs any more."""
        for _ in range(_MOST_ROUNDS):
            running = [child for child in self.children.values() if child.phase is ChildPhase.ACTIVE]
            if self.state.terminal or not running:
                return
            for child in running:
                code = exit_code_of(child)
                if code:
                    self.end_pod(f"{child.group}/{child.index}/0", ContainerResult(code), None)
                else:
                    self.succeed(child.name)
            self.now += 1
            self.converge()
        msg = f"no checker runs a set for more than {_MOST_ROUNDS} rounds"
        raise Skip(msg)
