"""Job sets that wait for other work, under the real controller in virtual time."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.compiled.codec import set_spec_of
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.job import JobState, Resources
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet
from holdfast.domain.workloads.jobset.state import JobSet, SetEvent
from holdfast.errors import Conflict, InvalidManifest
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.jobsets.sets import SetWriter, set_named
from holdfast.service.operations.rehearsal import Rehearsal, Verb
from holdfast.service.submit import Submitter
from holdfast.wire.render_jobsets import set_summary
from tests.unit.conftest import exits, job_named
from tests.unit.jobset_lab import SetLab, group, manifest
from tests.unit.jobset_service import backend_of, why

if TYPE_CHECKING:
    from collections.abc import Mapping

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)

AT = "metadata.annotations.holdfast.dev/depends-on"
RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):04}"


class WaitingSets(SetLab):
    """A lab whose jobs fail when they are called bad, and take five seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
        self.plan = lambda order: exits(int(order.job_name.startswith("bad")), after_s=5.0)
        ids = Numbers()
        self.sets = SetWriter(self.store, self.clock, ids)
        self.submitter = Submitter(self.store, self.clock, ids)

    def add(self, name: str, *after: Dependency) -> str:
        return self.submitter.submit(job_named(name, after=after)).id

    def add_set(self, depends_on: str, on_unmet: str = "", **spec: Any) -> str:  # noqa: ANN401 - any fields
        return self.sets.create(document(depends_on, on_unmet, **spec)).job_set.id

    def set(self) -> JobSet:
        return self.store.workload(JobSet, "train")

    def shown(self) -> tuple[str, str]:
        found = set_named(self.store, "train")
        summary = set_summary(found, set_spec_of(found), queue="default")
        return summary.state, summary.message

    def headline(self) -> str:
        return why(self, "train").headline

    def go_on(self, seconds: int, *, restarts: bool = False) -> None:
        for _ in range(seconds):
            self.pass_s(1)
            if restarts:
                self.restart_controller()


def document(depends_on: str = "", on_unmet: str = "", *, name: str = "train", **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any fields
    written = manifest(name, replicatedJobs=[group("w", 2)], **spec)
    annotations = {"holdfast.dev/depends-on": depends_on, "holdfast.dev/on-unmet": on_unmet}
    written["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value}
    return written


def native(**spec: object) -> dict[str, Any]:
    jobs = [{"name": "w", "replicas": 2, "command": ["true"]}]
    return {
        "apiVersion": "holdfast.dev/v1",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"jobs": jobs, **spec},
    }


@pytest.fixture
def lab() -> WaitingSets:
    return WaitingSets()


@RESTARTS
@pytest.mark.parametrize(
    ("other", "condition", "ended"),
    [
        ("good", "ok", "Completed"),
        ("good", "failed", "Failed"),
        ("good", "started", "Completed"),
        ("bad", "ok", "Failed"),
        ("bad", "failed", "Completed"),
        ("bad", "ended", "Completed"),
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["submitted before the other ends", "after that"])
def test_a_set_has_pods_only_once_its_condition_holds(
    lab: WaitingSets, other: str, condition: str, ended: str, *, late: bool, restarts: bool
) -> None:
    lab.add(other)
    if late:
        lab.go_on(10)
    lab.add_set(f"{other}:{condition}")
    lab.go_on(30, restarts=restarts)
    assert lab.set().ended == ended
    assert [order.job_name for order in lab.orders] == [other, *["train-w-0", "train-w-1"] * (ended == "Completed")]
    assert lab.controller.state.waits.awaited == {}


def test_it_says_what_it_waits_for_and_why_it_never_started(lab: WaitingSets) -> None:
    lab.add("bad")
    lab.add_set("bad")
    assert lab.shown() == ("Waiting", "waits for job bad to succeed")
    lab.go_on(2)
    assert lab.headline() == "Job set train waits for job bad to succeed."
    lab.go_on(10)
    state, message = lab.shown()
    assert (state, message) == ("Failed", "job bad did not succeed: it failed: exit code 1; no retry policy applies")
    assert lab.headline() == f"Job set train failed: {message}."


def test_to_those_that_wait_for_it_a_set_that_never_started_was_cancelled(lab: WaitingSets) -> None:
    lab.add("bad")
    lab.add_set("bad")
    for condition in (Condition.OK, Condition.FAILED, Condition.ENDED):
        lab.add(f"after-{condition}", Dependency("train", condition, target=DependencyKind.JOB_SET))
    lab.go_on(20)
    states = [lab.job(f"after-{condition}").state for condition in (Condition.OK, Condition.FAILED, Condition.ENDED)]
    assert states == [JobState.CANCELLED, JobState.CANCELLED, JobState.SUCCEEDED]
    assert lab.job("after-ok").reason.startswith("job set train did not succeed: it was cancelled: job bad did not")


@RESTARTS
def test_one_whose_condition_can_never_hold_is_suspended_or_runs_where_it_asks_for_that(
    lab: WaitingSets, *, restarts: bool
) -> None:
    lab.add("bad")
    set_id = lab.add_set("bad", "hold")
    lab.go_on(10, restarts=restarts)
    assert lab.shown() == ("Suspended", "job bad did not succeed: it failed: exit code 1; no retry policy applies")
    assert lab.headline().startswith("Job set train is suspended: job bad did not succeed")
    told = [entry.what for entry in lab.store.set_log(lab.set().id)]
    assert [one.reason for one in told if isinstance(one, SetEvent)].count("DependencyNeverSatisfied") == 1
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.go_on(20, restarts=restarts)
    assert (lab.set().ended, lab.set().state.unmet, len(lab.orders)) == ("Completed", "", 3)


def test_one_that_is_to_run_nevertheless_does(lab: WaitingSets) -> None:
    lab.add("bad")
    lab.add_set("bad", "run")
    lab.go_on(20)
    assert lab.set().ended == "Completed"


@RESTARTS
def test_one_that_is_suspended_while_it_waits_goes_on_waiting_when_it_is_resumed(
    lab: WaitingSets, *, restarts: bool
) -> None:
    lab.add("good")
    set_id = lab.add_set("good", suspend=True)
    lab.go_on(2, restarts=restarts)
    assert lab.shown()[0] == "Suspended"
    assert "Once it is resumed, it still waits for job good to succeed." in why(lab, "train").summary
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.go_on(1, restarts=restarts)
    assert lab.shown()[0] == "Waiting"
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.go_on(10, restarts=restarts)
    assert (lab.shown()[0], len(lab.orders)) == ("Suspended", 1)
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.go_on(10, restarts=restarts)
    assert lab.set().ended == "Completed"


def test_one_that_waits_can_be_deleted_and_is_forgotten_by_what_it_waited_for(lab: WaitingSets) -> None:
    lab.add("good")
    set_id = lab.add_set("good")
    lab.go_on(1)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.go_on(2)
    assert (lab.store.workloads(JobSet), lab.controller.state.waits.awaited) == ([], {})


def test_a_set_that_never_started_is_forgotten_after_its_time_to_live(lab: WaitingSets) -> None:
    lab.add("bad")
    lab.add_set("bad", ttlSecondsAfterFinished=30)
    lab.go_on(20)
    assert lab.set().ended == "Failed"
    lab.go_on(30)
    assert lab.store.workloads(JobSet) == []


def test_the_short_form_says_it_like_a_job() -> None:
    lab = WaitingSets()
    lab.add("bad")
    lab.sets.create(native(dependsOn=[{"name": "bad", "condition": "failed", "onUnmet": "hold"}]))
    (found,) = set_spec_of(lab.set()).after
    assert (found.condition, found.on_unmet, found.target) == (Condition.FAILED, OnUnmet.HOLD, DependencyKind.JOB)
    lab.go_on(20)
    assert lab.set().ended == "Completed"


@pytest.mark.parametrize(
    ("written", "path", "message"),
    [
        (document("nobody"), AT, "no job, array or job set has the id or name 'nobody'"),
        (document("train"), AT, "job set 'train' cannot wait for itself"),
        (document("prep:okay"), AT, "'okay' is not a condition"),
        (document("", "run"), "metadata.annotations.holdfast.dev/on-unmet", "nothing is waited for"),
        (native(dependsOn="nobody"), "spec.dependsOn[0]", "no job, array or job set has the id or name 'nobody'"),
        (native(dependsOn=[7]), "spec.dependsOn[0]", "must be text"),
    ],
)
def test_what_cannot_be_waited_for_is_refused_with_its_place(
    lab: WaitingSets, written: Mapping[str, Any], path: str, message: str
) -> None:
    with pytest.raises(InvalidManifest) as caught:
        lab.sets.create(written)
    (problem,) = caught.value.problems
    assert problem.path == path
    assert message in problem.message
    assert lab.store.workloads(JobSet) == []


def test_the_template_of_a_job_cannot_be_annotated_with_what_only_its_set_can_wait_for(lab: WaitingSets) -> None:
    written = document()
    template = written["spec"]["replicatedJobs"][0]["template"]
    template["metadata"] = {"annotations": {"holdfast.dev/depends-on": "prep"}}
    with pytest.raises(InvalidManifest) as caught:
        lab.sets.create(written)
    (problem,) = caught.value.problems
    assert problem.path == f"spec.replicatedJobs[0].template.{AT}"
    assert problem.message == "only a job set as a whole can wait for other work"


def test_what_a_set_waits_for_stays_when_it_is_applied_again_and_cannot_be_changed(lab: WaitingSets) -> None:
    lab.add("good")
    assert lab.sets.put(document("good")).result == "created"
    assert lab.sets.put(document("good")).result == "unchanged"
    lab.go_on(20)
    lab.store.delete_finished([lab.job("good").id])
    assert lab.sets.put(document("good", ttlSecondsAfterFinished=900)).result == "updated"
    lab.go_on(1)
    assert [(one.name, one.target) for one in set_spec_of(lab.set()).after] == [("good", DependencyKind.JOB)]
    for changed in (document("good:ended"), document(), document("good", "run")):
        with pytest.raises(InvalidManifest, match="cannot be changed in this way") as caught:
            lab.sets.put(changed)
        assert [problem.message.endswith("field is immutable") for problem in caught.value.problems] == [True]


def test_a_set_that_is_changed_while_it_waits_goes_on_waiting(lab: WaitingSets) -> None:
    lab.add("good")
    lab.add_set("good")
    lab.go_on(1)
    assert lab.sets.put(document("good", ttlSecondsAfterFinished=900)).result == "updated"
    lab.go_on(2)
    assert (lab.shown()[0], len(lab.orders)) == ("Waiting", 1)
    lab.go_on(20)
    assert lab.set().ended == "Completed"


def test_what_is_checked_together_may_wait_for_each_other_but_not_in_a_circle(lab: WaitingSets) -> None:
    rehearsal = Rehearsal(backend_of(lab.store, lab.clock, Numbers()))
    chain = [
        {"name": "report", "command": ["true"], "dependsOn": ["eval"]},
        document("train", name="eval"),
        document("prep"),
        {"name": "prep", "command": ["true"]},
    ]
    for verb in (Verb.CREATE, Verb.APPLY):
        assert [one.name for one in rehearsal.check(BY, chain, verb=verb)] == ["report", "eval", "train", "prep"]
    chain[3]["dependsOn"] = ["report"]
    with pytest.raises(InvalidManifest) as caught:
        rehearsal.check(BY, chain, verb=Verb.CREATE)
    (problem,) = caught.value.problems
    assert problem.message == "waits for itself through others: report -> eval -> train -> prep -> report"
    ring = [document("two", name="one"), document("one", name="two")]
    with pytest.raises(InvalidManifest) as caught:
        rehearsal.check(BY, ring, verb=Verb.CREATE)
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == (f"items[0].{AT}", "waits for itself through others: one -> two -> one")


def test_sets_that_are_checked_together_have_no_job_of_one_name(lab: WaitingSets) -> None:
    rehearsal = Rehearsal(backend_of(lab.store, lab.clock, Numbers()))
    job = {"name": "job", "command": ["true"]}
    sets = [manifest("x", replicatedJobs=[group("y-z")]), manifest("x-y", replicatedJobs=[group("z")])]
    for verb in (Verb.CREATE, Verb.APPLY):
        with pytest.raises(Conflict, match="job set 'x-y' would have a job 'x-y-z-0', and so has job set 'x'"):
            rehearsal.check(BY, [*sets, job], verb=verb)
    assert len(rehearsal.check(BY, [sets[0], manifest("x-y", replicatedJobs=[group("w")]), job], verb=Verb.CREATE)) == 3
