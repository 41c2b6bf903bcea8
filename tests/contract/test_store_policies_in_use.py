"""A retry policy that work names stays until that work has ended, whoever deletes it at which moment."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from holdfast.dialects.jobset.pod_template import RETRY_POLICIES
from holdfast.domain.job import JobState
from holdfast.domain.policy.model import Action, RetryPolicy
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes
from holdfast.domain.workloads.jobset.state import JobSet, JobSetState, Terminal
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict
from holdfast.ports.entries import POLICY
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.admission.records import new_job
from holdfast.service.jobsets.sets import SetWriter
from holdfast.service.submit import Submitter, WrittenJob
from tests.contract.test_store_versions import at_once
from tests.unit.conftest import VirtualClock
from tests.unit.jobset_lab import group, manifest
from tests.unit.jobset_service import Counting

if TYPE_CHECKING:
    from holdfast.ports.store import Store
    from tests.contract.conftest import Place

ROUNDS = 20
PATIENT = RetryPolicy("patient", retry_limit=9, default_action=Action.RETRY)
CHANGED = "wait for what has not ended, or cancel it; until then it can be changed: holdfast apply"


class Named(Counting):
    """Ids that begin alike."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def new(self) -> str:
        return f"{self._name}-{super().new()}"


def naming(name: str, policy: str) -> JobSpec:
    return JobSpec(name, ("true",), retry_policies=(policy,))


def submit(store: Store, kind: str, name: str, policy: str) -> None:
    """Submit a job, an array or a job set that names a policy."""
    if kind == "set":
        replicated = group("w")
        replicated["template"]["metadata"] = {"annotations": {RETRY_POLICIES: policy}}
        SetWriter(store, VirtualClock(), Named(name)).create(manifest(name, replicatedJobs=[replicated]))
        return
    spec = naming(name, policy)
    submitter = Submitter(store, VirtualClock(), Named(name))
    if kind == "job":
        submitter.submit(spec)
    else:
        submitter.submit_array(WrittenJob(spec, array=ArraySpec(spec, (Indexes(0, 1),))))


def end(store: Store) -> None:
    """End all there is, as a controller would."""
    jobs = {one.id: evolve(one, state=JobState.CANCELLED, ended_at=101.0) for one in store.jobs(JobFilter())}
    arrays = {one.id: evolve(one, state=ArrayState(status="Cancelled")) for one in store.workloads(Array)}
    sets = {one.id: evolve(one, state=JobSetState(terminal=Terminal.FAILED)) for one in store.workloads(JobSet)}
    store.commit(Changes(jobs=jobs, workloads={**arrays, **sets}))


@pytest.mark.parametrize(("kind", "noun"), [("job", "job"), ("array", "array"), ("set", "job set")])
def test_a_policy_that_work_names_is_deleted_once_that_has_ended(store: Store, kind: str, noun: str) -> None:
    store.put_entry(PATIENT)
    submit(store, kind, "train", "patient")
    with pytest.raises(Conflict) as raised:
        store.delete_entry(POLICY, "patient")
    assert str(raised.value).startswith(f"retry policy 'patient' is used by {noun} 'train' (")
    assert raised.value.message.count("used by") == raised.value.message.count("(") == 1
    assert raised.value.hint == CHANGED
    assert store.catalogue().policies["patient"] == PATIENT
    assert store.put_entry(evolve(PATIENT, retry_limit=1)).revision == 2
    end(store)
    store.delete_entry(POLICY, "patient")
    assert dict(store.catalogue().policies) == {}


def test_who_uses_a_policy_is_listed_in_short_also_when_it_is_to_be_detached(store: Store) -> None:
    store.put_entry(PATIENT)
    for number in range(5):
        submit(store, "job", f"train-{number}", "patient")
    with pytest.raises(Conflict) as raised:
        store.delete_entry(POLICY, "patient", detach=True)
    assert "job 'train-0' (" in raised.value.message
    assert raised.value.message.endswith("), others")
    assert raised.value.message.count("job 'train-") == 3


def test_what_only_looks_like_the_name_of_a_policy_keeps_none(store: Store) -> None:
    store.put_entry(PATIENT)
    odd = JobSpec("patient", ("patient", "%"), labels={"policy": "patient"}, env={"patient": "patient"})
    made = new_job(odd, "j1", 1.0)
    store.submit(Submission([made, evolve(made, id="damaged", spec='{"patient"')]))
    store.delete_entry(POLICY, "patient")


def test_work_that_names_a_policy_which_is_deleted_at_the_same_moment_is_not_accepted(store: Store) -> None:
    store.put_entry(PATIENT)

    class Deleting(Counting):
        """Gives ids, once the policy that was looked up is deleted."""

        def new(self) -> str:
            if "patient" in store.catalogue().policies:
                store.delete_entry(POLICY, "patient")
            return super().new()

    with pytest.raises(Conflict, match="retry policy 'patient' does not exist any more") as raised:
        Submitter(store, VirtualClock(), Deleting()).submit(naming("train", "patient"))
    assert raised.value.hint == "create it again, or name another one"
    assert store.jobs(JobFilter()) == []


@pytest.mark.parametrize("kind", ["job", "array", "set"])
def test_of_a_submission_and_the_deletion_of_its_policy_one_is_accepted(place: Place, kind: str) -> None:
    submitting, deleting = place.open(), place.open()
    for number in range(ROUNDS):
        name = f"p{number}"
        submitting.put_entry(evolve(PATIENT, name=name))
        raised = at_once(
            [
                partial(submit, submitting, kind, name, name),
                partial(deleting.delete_entry, POLICY, name),
            ]
        )
        assert len(raised) == 1
        is_there = name in submitting.catalogue().policies
        known = {one.name for one in submitting.jobs(JobFilter())}
        known |= {one.name for one in (*submitting.workloads(Array), *submitting.workloads(JobSet))}
        assert is_there is (name in known)
