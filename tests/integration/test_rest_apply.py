"""Kubernetes Jobs that are applied over REST: left alone, suspended, resumed, or submitted because they are others."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import AlreadyExists, InvalidManifest
from holdfast.ports.store import JobFilter
from holdfast.service.apply import apply_job
from holdfast.service.manifests.reading import written_job
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from holdfast.service.submit import Submitter
from tests.property.test_canonical_manifests import CHANGED, JOB, REMOVED, REWRITTEN, written
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab

if TYPE_CHECKING:
    import httpx

    from holdfast.client import Client

TRAIN = written(JOB, (("spec", "template", "spec", "initContainers"), REMOVED))


def pi(**spec: object) -> dict[str, Any]:
    container = {"name": "main", "command": ["perl"]}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "pi", "labels": {"team": "blue"}},
        "spec": {"template": pod, **spec},
    }


@pytest.fixture(autouse=True)
def programs_run_on(lab: SetLab) -> None:
    lab.plan = lambda _: exits(0, after_s=FOREVER)


def test_a_suspended_job_is_resumed_by_applying_it_unsuspended(client: Client, lab: SetLab) -> None:
    first = client.put_job("pi", pi(suspend=True))
    lab.pass_s(2)
    assert (first.result, client.job("pi").state) == ("created", "Held")
    assert client.put_job("pi", pi(suspend=True)).result == "unchanged"
    resumed = client.put_job("pi", pi(suspend=False))
    assert (resumed.id, resumed.result) == (first.id, "resumed")
    assert client.put_job("pi", pi()).result == "unchanged"
    lab.pass_s(2)
    assert client.put_job("pi", pi()).result == "unchanged"
    assert client.job("pi").state == "Running"
    assert client.put_job("pi", pi(suspend=True)).result == "suspended"
    lab.pass_s(60)
    assert client.job("pi").state == "Held"
    assert [job.id for job in client.jobs()] == [first.id]


def test_of_quick_changes_the_last_counts(client: Client, lab: SetLab) -> None:
    results = [client.put_job("pi", pi(suspend=suspend)).result for suspend in (True, False, True, True, False)]
    assert results == ["created", "resumed", "suspended", "unchanged", "resumed"]
    lab.pass_s(2)
    assert client.job("pi").state == "Running"


def test_a_job_that_is_another_or_has_ended_otherwise_is_submitted(client: Client, lab: SetLab) -> None:
    first = client.put_job("pi", pi())
    relabelled = {**pi(), "metadata": {"name": "pi"}}
    assert client.put_job("pi", pi(backoffLimit=2)).result == "created"
    assert client.put_job("pi", relabelled).result == "created"
    lab.pass_s(2)
    client.cancel(client.put_job("pi", relabelled).id)
    lab.pass_s(60)
    assert client.put_job("pi", {**relabelled, "spec": pi(suspend=True)["spec"]}).result == "unchanged"
    assert first.id in {job.id for job in client.jobs()}


@pytest.mark.parametrize("edit", [*REWRITTEN, (("backoffLimitPerIndex",), None)], ids=str)
def test_a_job_written_another_way_is_unchanged(client: Client, edit: tuple[tuple[str | int, ...], object]) -> None:
    first = client.put_job("train", TRAIN)
    again = client.put_job("train", {**TRAIN, "spec": written(TRAIN["spec"], edit)})
    assert (again.id, again.result) == (first.id, "unchanged")


@pytest.mark.parametrize("edit", CHANGED, ids=str)
def test_a_job_that_means_something_else_is_submitted(
    client: Client, edit: tuple[tuple[str | int, ...], object]
) -> None:
    client.put_job("train", TRAIN)
    assert client.put_job("train", {**TRAIN, "spec": written(TRAIN["spec"], edit)}).result == "created"


def test_defaults_and_what_a_server_adds_to_a_job_change_nothing(client: Client) -> None:
    first = client.put_job("pi", pi())
    added = {"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, "resourceVersion": "7"}
    added["labels"] = {"team": "blue", "controller-uid": "1", "batch.kubernetes.io/job-name": "pi"}
    added["annotations"] = {"batch.kubernetes.io/job-tracking": ""}
    shown = pi(backoffLimit=6, completions=1, parallelism=1, completionMode="NonIndexed", suspend=False)
    shown["spec"] |= {
        "selector": {"matchLabels": {"controller-uid": "1"}},
        "podReplacementPolicy": "TerminatingOrFailed",
    }
    shown = {**shown, "metadata": {"name": "pi", **added}, "status": {"active": 1}}
    shown["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 30
    assert (client.put_job("pi", shown).id, client.put_job("pi", shown).result) == (first.id, "unchanged")


@pytest.mark.parametrize(("other", "answer"), [({}, "unchanged"), ({"backoffLimit": 2}, "already_exists")])
def test_of_two_jobs_applied_at_the_same_time_one_is_submitted(lab: SetLab, other: dict[str, Any], answer: str) -> None:
    both_have_looked, ids = threading.Barrier(2), itertools.count(1)

    class Ids:
        def new(self) -> str:
            both_have_looked.wait(10)
            return f"job-{next(ids)}"

    apply = partial(apply_job, Submitter(lab.store, lab.clock, Ids()), Control(JOBS, lab.store, lab.clock))

    def result(document: dict[str, Any]) -> str:
        try:
            return apply(written_job(document)).result
        except AlreadyExists as error:
            return error.code

    with ThreadPoolExecutor(2) as threads:
        results = list(threads.map(result, [pi(), pi(**other)]))
    assert sorted(results) == sorted(["created", answer])
    assert len(lab.store.jobs(JobFilter())) == 1


def test_only_jobs_of_kubernetes_are_applied_and_under_their_own_name(client: Client, http: httpx.Client) -> None:
    with pytest.raises(InvalidManifest, match="only batch/v1 Jobs can be applied"):
        client.put_job("a", {"metadata": {"name": "a"}, "spec": {"command": ["x"]}})
    with pytest.raises(InvalidManifest, match="is not the name in the address"):
        client.put_job("e", pi())
    refused = http.put("/api/v1/jobs/pi", json=pi(parallelism=-1))
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "spec.parallelism")
    assert list(client.jobs()) == []
