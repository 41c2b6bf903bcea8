"""Who is told of the end of a job set, and of a Job of Kubernetes: once, whatever was restarted on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.jobset.reading import JobManifest
from holdfast.domain.job import Queue, Resources
from holdfast.domain.notifications.words import facts, subject
from holdfast.domain.notifier import Medium, Notifier, Notify, Occasion
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.errors import InvalidManifest
from holdfast.ports.engine import NodeInfo
from holdfast.ports.notifications import NotificationFilter
from holdfast.service.jobsets.checks import check_set
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, compiled, fails_first, group, manifest
from tools.cases.kube_reading import read_kube

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.notifications.notification import OutcomeReport
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

NATIVE = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "train"}}


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def annotated(text: str, **spec: object) -> dict[str, Any]:
    found = {**manifest(), "spec": spec}
    found["metadata"]["annotations"] = {"holdfast.dev/notify": text}
    return found


def told(lab: SetLab) -> Sequence[tuple[str, OutcomeReport]]:
    return [(one.to, one.report) for one in lab.store.notifications(NotificationFilter(), limit=100)]


@pytest.mark.parametrize(
    ("plan", "restarts", "event", "names"),
    [
        (lambda _: exits(0), 0, "jobset.completed", ["all"]),
        (fails_first("train-w-0"), 1, "jobset.recovered", ["all", "again"]),
        (lambda _: exits(3), 1, "jobset.failed", ["all", "failure"]),
    ],
    ids=["completed", "recovered", "failed"],
)
def test_the_end_of_a_set_is_told_once_to_who_asked_for_it(
    lab: SetLab, plan: Callable[[RunOrder], SimulatedRun], restarts: int, event: str, names: list[str]
) -> None:
    policy = {"maxRestarts": 1}
    text = "all failure:failure again:recovery held:hold,stall"
    lab.submit_set(annotated(text, replicatedJobs=[group("w", 2)], failurePolicy=policy), plan)
    lab.pass_s(30)
    found = told(lab)
    assert [to for to, _ in found] == names
    assert {(report.event, report.name, report.counts["restarts"]) for _, report in found} == {
        (event, "train", restarts)
    }


def test_a_queue_has_people_told_of_its_sets_and_nobody_of_their_jobs(lab: SetLab) -> None:
    lab.store.put_entry(Notifier("ops", Medium.WEBHOOK, url="https://example.org"))
    lab.store.put_entry(Queue("ml", notify=(Notify("ops"),)))
    document = manifest(replicatedJobs=[group("w", 2)])
    document["metadata"]["labels"] = {"holdfast.dev/queue": "ml"}
    lab.submit_set(document, fails_first("train-w-1"))
    lab.pass_s(30)
    [(to, report)] = told(lab)
    assert (to, report.queue, report.state) == ("ops", "ml", "Failed")
    assert subject(report).startswith("job set train failed: jobset failed due to one or more job failures")
    said = dict(facts(report))
    assert (said["jobset"], said["more"]) == ("train (set-train)", "holdfast why jobset set-train")
    assert said["jobs"].endswith("1 failed, 0 restarts")


def test_every_form_says_who_is_told() -> None:
    on = (Notify("ops", (Occasion.FAILURE, Occasion.HOLD)), Notify("me"))
    native = {**NATIVE, "spec": {"jobs": [{"name": "w", "command": ["true"]}], "notify": [{"to": "me"}]}}
    spec = read_kube(native).manifest
    assert isinstance(spec, JobSetSpec)
    assert spec.notify == (Notify("me"),)
    assert compiled(annotated("ops:failure,hold  me", replicatedJobs=[group("w")])).notify == on
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": group("w")["template"]["spec"]}
    job["metadata"]["annotations"] = {"holdfast.dev/notify": "ops:failure,hold me"}
    found = read_kube(job).manifest
    assert isinstance(found, JobManifest)
    assert found.notify == on


@pytest.mark.parametrize(
    ("text", "said"),
    [("ops:later", "'later' is not an event"), ("https://x", "not"), ("ops:", "is not an event")],
)
def test_an_annotation_that_cannot_be_read_is_refused_where_it_is(text: str, said: str) -> None:
    with pytest.raises(InvalidManifest) as raised:
        read_kube(annotated(text, replicatedJobs=[group("w")]))
    assert all(problem.path == "metadata.annotations.holdfast.dev/notify" for problem in raised.value.problems)
    assert said in raised.value.problems[0].message


def test_a_set_that_names_a_notifier_which_is_not_there_is_refused() -> None:
    document = annotated("nobody", replicatedJobs=[group("w")])
    error = check_set(compiled(document), SetLab().store.catalogue(), document)
    assert error is not None
    [problem] = error.problems
    assert (problem.path, "nobody" in problem.message) == ("metadata.annotations.holdfast.dev/notify", True)
