"""A kind of work that Holdfast does not have is looked after like any other, with no change to the controller."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import SetChange, dump_change, dump_spec
from holdfast.dialects.jobset.wording import ManifestNotes
from holdfast.dialects.native.dependencies import read_dependencies
from holdfast.dialects.reading import Fields
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Act, Caller
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import RUN_TERMINAL
from holdfast.domain.record import evolve
from holdfast.domain.rights import TABLE
from holdfast.domain.terms.kinds import JOB, KINDS
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Conflict, Forbidden
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import JobFilter, Submission
from holdfast.service.admission.dependencies import DependencyResolver, SubmissionItem
from holdfast.service.operations.backend import Backend
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from holdfast.storage.sql import open_store
from holdfast.storage.sql.catalogue.kinds import names_policy, require_no_owners
from tests import databases
from tests.integration.conftest import NoLogs
from tests.kinds.rollout.manifest import read
from tests.kinds.rollout.model import Rollout, RolloutSpec
from tests.kinds.rollout.operations import Rollouts
from tests.kinds.rollout.rules import SETTLES_S
from tests.kinds.rollout.words import ROLLOUT
from tests.unit.conftest import Lab
from tests.unit.jobset_service import Counting

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.errors import Problem
    from holdfast.ports.engine import RunOrder


class RolloutLab(Lab):
    """A lab that has rollouts too, on a real database, with programs that run until they are stopped."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.store = open_store(databases.migrated(path))  # type: ignore[assignment] # one store is as good as another
        self.restart_controller()

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.orders.append(order)
        return SimulatedRun(duration_s=1e9)

    def roll_out(self, name: str, spec: RolloutSpec) -> None:
        row = Rollout(id=name, name=name, spec=dump_spec(spec), created_at=self.clock.now())
        self.store.submit(Submission([], owner=row))

    def change(self, name: str, spec: RolloutSpec) -> None:
        payload = dump_change(SetChange("", dump_spec(spec)))
        self.store.append(Request(RequestKind.UPDATE, (name,), self.clock.now(), payload=payload))

    def generations(self) -> dict[str, int]:
        """Return the generation of each run that has not ended, as it is stored, by the name of its job."""
        names = {job.id: job.name for job in self.store.jobs(JobFilter())}
        found = [run for run in self.store.running() if run.status not in RUN_TERMINAL]
        return {names[run.job_id]: run.generation for run in found}

    def known(self) -> Counter[int]:
        """Count the runs the controller knows by generation."""
        return Counter(
            run.generation for active in self.controller.state.active.values() for run in active.runs.values()
        )


def replicas(number: int, command: str = "serve") -> RolloutSpec:
    container = {"name": "main", "image": "busybox", "command": [command]}
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    manifest = {"apiVersion": "holdfast.dev/v1", "kind": "Rollout", "metadata": {"name": "web"}, "spec": spec}
    found = read(manifest, ManifestNotes())
    assert found is not None
    return evolve(found.spec, replicas=number)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RolloutLab:
    monkeypatch.setitem(KINDS, ROLLOUT.name, ROLLOUT)
    monkeypatch.setitem(TABLE, ROLLOUT.subject, TABLE[JOB.subject])
    return RolloutLab(tmp_path / "holdfast.db")


def test_the_jobs_of_a_kind_the_controller_never_heard_of_are_made_by_its_rules_and_each_is_started_once(
    lab: RolloutLab,
) -> None:
    lab.roll_out("web", replicas(2))
    for _ in range(6):
        lab.step()
        lab.restart_controller()
    lab.pass_s(3)
    assert lab.generations() == {"web-1-0": 1, "web-1-1": 1}
    assert Counter(order.job_name for order in lab.orders) == {"web-1-0": 1, "web-1-1": 1}
    assert lab.store.workload(Rollout, "web").state.up_since is not None


def test_two_generations_run_at_once_and_are_both_known_after_a_restart_of_the_controller(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(2))
    lab.pass_s(3)
    lab.change("web", replicas(1, "serve-better"))
    lab.pass_s(3)
    both = {"web-1-0": 1, "web-1-1": 1, "web-2-0": 2}
    assert lab.generations() == both
    lab.restart_controller()
    assert lab.known() == {1: 2, 2: 1}
    lab.step(2)
    assert lab.generations() == both
    lab.pass_s(SETTLES_S + 2)
    assert lab.generations() == {"web-2-0": 2}
    assert lab.known() == {2: 1}
    assert {job.name: job.state for job in lab.store.jobs(JobFilter())} == {
        "web-1-0": JobState.CANCELLED,
        "web-1-1": JobState.CANCELLED,
        "web-2-0": JobState.RUNNING,
    }
    assert {order.job_name: order.containers[0].command for order in lab.orders}["web-2-0"] == ("serve-better",)
    assert len(lab.orders) == 3


def test_it_waits_for_its_time_although_nothing_happens(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(1))
    lab.pass_s(3)
    lab.change("web", replicas(1))
    lab.pass_s(1)
    since = lab.store.workload(Rollout, "web").state.up_since
    assert since is not None
    assert lab.tick().next_due == since + SETTLES_S


def test_one_whose_rules_fail_is_left_alone_until_it_is_changed_and_no_other_is(lab: RolloutLab) -> None:
    lab.roll_out("broken", replicas(-1))
    lab.roll_out("web", replicas(1))
    lab.pass_s(3)
    found = lab.store.quarantined()["broken"]
    assert (found.kind, found.message.startswith("reconciling it: RuntimeError")) == ("rollout", True)
    assert lab.generations() == {"web-1-0": 1}
    lab.change("broken", replicas(1))
    lab.pass_s(3)
    assert lab.store.quarantined() == {}
    assert lab.generations() == {"web-1-0": 1, "broken-2-0": 2}


def test_it_is_deleted_when_its_programs_have_stopped(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(2))
    lab.pass_s(3)
    lab.store.append(Request(RequestKind.DELETE, ("web",), lab.clock.now()))
    lab.pass_s(3)
    assert lab.generations() == {}
    assert lab.store.workloads(Rollout) == []
    assert [job.state for job in lab.store.jobs(JobFilter())] == [JobState.CANCELLED] * 2
    assert lab.controller.state.jobs == {}


def test_who_may_ask_what_of_it_is_decided_recorded_and_done_as_of_any_kind(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(1))
    lab.pass_s(3)
    rollouts = Rollouts(Backend(lab.store, lab.clock, Counting(), NoLogs(), Principal("lab")))
    vera, ada = (
        Caller(Principal(name, roles=(role,)), lab.clock.now())
        for name, role in (("vera", Role.VIEWER), ("ada", Role.ADMIN))
    )
    with pytest.raises(Forbidden):
        rollouts.ask(vera, Act.DELETE, "web")
    with pytest.raises(Conflict, match="cannot be asked to hold: it is Available"):
        rollouts.ask(ada, Act.HOLD, "web")
    assert rollouts.ask(ada, Act.DELETE, "web", "no longer needed").phase(None) == "Available"
    assert rollouts.ask(ada, Act.DELETE, "web").phase(None) == "Deleting"
    lab.pass_s(3)
    assert lab.store.workloads(Rollout) == []
    entries = [each.entry for each in lab.store.audit(limit=9)]
    assert {each.subject for each in entries} == {"rollout"}
    assert [(each.caller.actor, each.act, each.outcome) for each in entries] == [
        ("vera", Act.CANCEL, "forbidden"),
        ("ada", Act.HOLD, "conflict"),
        ("ada", Act.DELETE, "accepted"),
    ]


def test_its_jobs_are_its_own_to_start_and_stop_and_all_of_it_is_suspended_when_that_is_asked(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(1))
    lab.pass_s(3)
    jobs = Control(JOBS, lab.store, lab.clock)
    for act in (Act.CANCEL, Act.HOLD):
        with pytest.raises(Conflict, match="belongs to a rollout, which starts and stops it"):
            jobs.ask(act, "web-1-0")
    rollouts = Rollouts(Backend(lab.store, lab.clock, Counting(), NoLogs(), Principal("lab")))
    ada = Caller(Principal("ada", roles=(Role.ADMIN,)), lab.clock.now())
    rollouts.ask(ada, Act.SUSPEND, "web")
    assert rollouts.get(ada, "web").phase(None) == "Suspended"
    lab.pass_s(3)
    assert lab.generations() == {}
    rollouts.ask(ada, Act.RESUME, "web")
    lab.pass_s(3)
    assert lab.generations() == {"web-3-0": 3}
    assert [each.entry.act for each in lab.store.audit(limit=9)] == [Act.SUSPEND, Act.RESUME]


def test_other_work_can_wait_for_it_by_its_kind_and_name(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(1))
    problems: list[Problem] = []
    after = read_dependencies(Fields({"dependsOn": ["rollout/web:ended", "web:ended"]}, "", problems), is_array=False)
    assert (problems, after[0].noun) == ([], "rollout web")
    found = DependencyResolver(lab.store, [SubmissionItem(JobSpec("next", ("next",), after=after))])
    assert found.problems() == {}
    assert [(one.target, one.id) for one in found.resolved(0, {}).after] == [("rollout", "web")] * 2


def test_the_queue_and_the_policies_that_it_names_stay(lab: RolloutLab) -> None:
    lab.roll_out("web", replicas(1))
    patient = dump_spec(JobSpec("replica", ("serve",), retry_policies=("patient",)))
    row = evolve(lab.store.workload(Rollout, "web"), spec=dump_spec(RolloutSpec(1, patient)))
    assert names_policy(row, "patient")
    with pytest.raises(Conflict, match=r"queue 'default' still has rollout 'web'"):
        require_no_owners("default", [row])
