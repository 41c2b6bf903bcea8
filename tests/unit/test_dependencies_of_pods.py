"""Kubernetes Jobs that wait for other work, under the real controller and a real database, in virtual time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.manifests import read_one
from holdfast.domain.audit import Act
from holdfast.domain.job import JobState
from holdfast.domain.workloads.dependencies import Condition, Dependency, OnUnmet
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import InvalidManifest
from holdfast.ports.requests import RequestKind
from holdfast.service.apply import apply_job
from holdfast.service.explain import Explainer
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from holdfast.service.submit import WrittenJob
from tests.unit.conftest import exits
from tests.unit.test_dependencies import WaitingLab

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
WAITING, HELD, RUNNING = JobState.WAITING, JobState.HELD, JobState.RUNNING
AT = "metadata.annotations.holdfast.dev/depends-on"
UNMET_AT = "metadata.annotations.holdfast.dev/on-unmet"


def document(name: str, *, depends_on: str = "", on_unmet: str = "", **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - any fields
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    annotations = {"holdfast.dev/depends-on": depends_on, "holdfast.dev/on-unmet": on_unmet}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {key: value for key, value in annotations.items() if value}},
        "spec": {
            "backoffLimit": 0,
            **spec,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def read(written: Mapping[str, Any]) -> JobSpec:
    found = read_one(written)
    assert isinstance(found.manifest, JobSpec), found.problems
    return found.manifest


def problems(**written: str) -> list[tuple[str, str]]:
    return [(one.path, one.message) for one in read_one(document("next", **written)).problems]


@pytest.fixture
def lab(tmp_path: Path) -> WaitingLab:
    lab = WaitingLab(tmp_path / "holdfast.db")
    lab.ends = lambda order: exits(int(order.job_name.startswith("bad")), after_s=5.0)
    return lab


def add(lab: WaitingLab, name: str, depends_on: str, **more: Any) -> str:  # noqa: ANN401 - any fields
    return lab.submitter.submit(read(document(name, depends_on=depends_on, **more))).id


def pass_s(lab: WaitingLab, seconds: int, *, restarts: bool = False) -> None:
    for _ in range(seconds):
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()


def test_annotations_say_what_a_kubernetes_job_waits_for() -> None:
    spec = read(document("next", depends_on=" prep , jobset/other:ended,", on_unmet="hold"))
    assert [(one.name, one.condition) for one in spec.after] == [("prep", Condition.OK), ("other", Condition.ENDED)]
    assert {one.on_unmet for one in spec.after} == {OnUnmet.HOLD}
    assert read(document("next", depends_on="prep")).after == (Dependency("prep"),)


def test_annotations_that_mean_nothing_are_refused_where_they_are() -> None:
    assert problems(depends_on="prep:okay") == [(AT, "'okay' is not a condition")]
    assert problems(depends_on="sweep:index") == [(AT, "only the tasks of an array can each wait for a task")]
    assert problems(depends_on="prep", on_unmet="wait") == [(UNMET_AT, "'wait' is not one of its values")]
    (path, message) = problems(on_unmet="run")[0]
    assert (path, "nothing is waited for" in message) == (UNMET_AT, True)


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
@pytest.mark.parametrize(
    ("other", "condition", "state"),
    [
        ("good", "ok", SUCCEEDED),
        ("good", "failed", CANCELLED),
        ("good", "started", SUCCEEDED),
        ("bad", "ok", CANCELLED),
        ("bad", "failed", SUCCEEDED),
        ("bad", "ended", SUCCEEDED),
    ],
)
@pytest.mark.parametrize("late", [False, True], ids=["submitted before the other ends", "after that"])
def test_a_kubernetes_job_has_pods_only_once_its_condition_holds(
    lab: WaitingLab, other: str, condition: str, state: JobState, *, late: bool, restarts: bool
) -> None:
    lab.add(other)
    if late:
        pass_s(lab, 10)
    job_id = add(lab, "next", f"{other}:{condition}")
    if not late:
        assert lab.job("next").state is WAITING
    pass_s(lab, 20, restarts=restarts)
    assert lab.job("next").state is state
    assert lab.started() == [other, *["next"] * (state is SUCCEEDED)]
    assert len(lab.store.runs(job_id)) == (state is SUCCEEDED)


def test_it_says_what_it_waits_for_and_why_it_never_ran(lab: WaitingLab) -> None:
    lab.add("bad")
    add(lab, "next", "bad")
    add(lab, "last", "next")
    pass_s(lab, 2)
    assert lab.job("next").reason == "waits for job bad to succeed"
    assert Explainer(lab.store).why("next").headline == "Job next waits for job bad to succeed"
    pass_s(lab, 10)
    assert lab.states("next", "last") == [CANCELLED, CANCELLED]
    assert lab.job("next").reason.startswith("job bad did not succeed: it failed")
    assert lab.job("last").reason.startswith("job next did not succeed: it was cancelled")
    assert not lab.controller.state.waits.awaited


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
def test_one_that_is_suspended_while_it_waits_goes_on_waiting_when_it_is_resumed(
    lab: WaitingLab, *, restarts: bool
) -> None:
    lab.add("good")
    job_id = add(lab, "next", "good", suspend=True)
    pass_s(lab, 2, restarts=restarts)
    assert lab.job("next").state is HELD
    lab.ask(RequestKind.RELEASE, job_id)
    pass_s(lab, 1, restarts=restarts)
    assert (lab.job("next").state, lab.job("next").reason) == (WAITING, "waits for job good to succeed")
    lab.ask(RequestKind.HOLD, job_id)
    pass_s(lab, 15, restarts=restarts)
    assert (lab.states("good", "next"), lab.started()) == ([SUCCEEDED, HELD], ["good"])
    lab.ask(RequestKind.RELEASE, job_id)
    pass_s(lab, 10, restarts=restarts)
    assert lab.job("next").state is SUCCEEDED


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
def test_one_that_is_to_be_held_waits_for_a_person_and_one_that_is_to_run_runs(
    lab: WaitingLab, *, restarts: bool
) -> None:
    lab.add("bad")
    job_id = add(lab, "next", "bad", on_unmet="hold")
    add(lab, "other", "bad", on_unmet="run")
    pass_s(lab, 20, restarts=restarts)
    assert lab.states("next", "other") == [HELD, SUCCEEDED]
    assert lab.job("next").reason.startswith("job bad did not succeed: it failed")
    Control(JOBS, lab.store, lab.clock).ask(Act.RELEASE, "next")
    pass_s(lab, 10, restarts=restarts)
    assert (lab.job("next").state, len(lab.store.runs(job_id))) == (SUCCEEDED, 1)


def test_one_that_waits_can_be_cancelled_and_is_forgotten_by_what_it_waited_for(lab: WaitingLab) -> None:
    lab.add("good")
    job_id = add(lab, "next", "good", ttlSecondsAfterFinished=60)
    pass_s(lab, 1)
    lab.ask(RequestKind.CANCEL, job_id)
    pass_s(lab, 1)
    assert (lab.job("next").state, lab.controller.state.waits.awaited) == (CANCELLED, {})
    expires = lab.store.workloads_by_id(KubeJobRecord, [job_id])[job_id].expires_at
    assert expires == (lab.job("next").ended_at or 0.0) + 60


def test_names_of_one_submission_may_come_in_any_order_and_not_in_a_circle(lab: WaitingLab) -> None:
    specs = [read(document("next", depends_on="prep")), read(document("prep"))]
    lab.submitter.submit_many([WrittenJob(one) for one in specs])
    pass_s(lab, 20)
    assert lab.started() == ["prep", "next"]
    ring = [read(document("one", depends_on="two")), read(document("two", depends_on="one"))]
    with pytest.raises(InvalidManifest) as caught:
        lab.submitter.submit_many([WrittenJob(one) for one in ring])
    (problem,) = caught.value.problems
    assert problem.path == f"items[0].{AT}"
    assert problem.message == "waits for itself through others: one -> two -> one"


def test_applying_the_same_again_leaves_what_waits_alone(lab: WaitingLab) -> None:
    lab.add("good")
    apply = partial(apply_job, lab.submitter, Control(JOBS, lab.store, lab.clock))
    results = [apply(WrittenJob(read(document("next", depends_on="good")))).result for _ in range(2)]
    results.append(apply(WrittenJob(read(document("next", depends_on="good:ended")))).result)
    assert results == ["created", "unchanged", "created"]
