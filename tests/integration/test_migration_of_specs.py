"""A database whose specifications and catalogue were stored as text has them compiled, and goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from alembic import command
from sqlalchemy import column, insert, table, update

from holdfast.compiled.codec import OperatorSettings, dump_entry, load_entry, load_set_spec, load_spec, set_spec_of
from holdfast.dialects.jobset.loading import dump_set
from holdfast.dialects.manifests import read_manifest
from holdfast.domain.audit import Act
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.policy.model import Action, RetryPolicy, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import UnreadableSpec
from holdfast.ports.store import JobFilter
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobsets import JOB_SETS
from holdfast.storage.sql import migrations, open_store
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.migrations import steps
from tests.reading import as_named_now
from tests.unit.conftest import Lab, exits, job_named
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from holdfast.storage.sql import SqlStore

STORED = Path(__file__).parents[1] / "data" / "stored" / "version-0.json"
PLAIN = '{"name":"n","command":["true"],"queue":"default","resources":{"cpu":1,"gpu":0,"memory":0}}'
NOT_A_SPEC = '{"name":"x","kube":{"template":{"spec":{}}}}'
TRAIN = manifest(replicatedJobs=[group("w")], suspend=True)


class Old:
    """A database at the schema of the release before."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.database = Database(url)
        self.upgrade("0006")

    def upgrade(self, schema: str) -> None:
        with self.database.writing() as connection:
            command.upgrade(steps.configuration(connection), schema)

    def insert(self, name: str, /, **row: object) -> None:
        with self.database.writing() as connection:
            connection.execute(insert(table(name, *map(column, row))).values(row))

    def job(self, job_id: str, body: str, state: str = "Queued", **place: object) -> None:
        digest = job_id.encode()
        self.insert("specs", digest=digest, body=body)
        self.insert(
            "jobs", id=job_id, name=job_id, queue="default", priority=0, submitted_at=1.0, spec=digest, gang=1, cpu_m=1,
            memory=0, gpu=0, state=state, reason="", attempt=0, queued_at=1.0, updated_at=2.0, counters="{}", retries=0,
            cancel_requested=False, **place,
        )  # fmt: skip

    def job_set(self, set_id: str, text: str) -> None:
        self.insert(
            "job_sets", id=set_id, name=set_id, created_at=1.0, manifest=text, lenient=False, generation=1,
            updated_at=2.0, deleting=False, state="{}",
        )  # fmt: skip

    def ask(self, kind: str, set_id: str, payload: str = "") -> None:
        job_ids = json.dumps([set_id])
        self.insert("requests", kind=kind, job_ids=job_ids, created_at=1.0, actor="", reason="", payload=payload)

    def upgraded(self) -> SqlStore:
        self.database.close()
        migrations.upgrade(self.url)
        return open_store(self.url)


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Old:
    server = request.param == "postgresql"
    return Old(request.getfixturevalue("postgres_server").empty() if server else str(tmp_path / "holdfast.db"))


def compiled(document: dict[str, Any]) -> object:
    return read_manifest(document)


def test_what_the_release_before_stored_is_compiled(old: Old) -> None:
    samples = json.loads(STORED.read_text())
    newer = json.loads(STORED.with_name("version-1.json").read_text())
    for place, sample in enumerate(samples):
        if sample["kind"] == "set":
            old.job_set(f"set{place}", sample["stored"])
        else:
            old.job(f"job{place}", sample["stored"])
    store = old.upgraded()
    found = {job.id: job.spec for job in store.load().jobs} | {row.id: row.spec for row in store.workloads(JobSet)}
    kinds = ["set" if one["kind"] == "set" else "job" for one in samples]
    assert found == {f"{kind}{place}": newer[place]["stored"] for place, kind in enumerate(kinds)}
    assert {row.manifest for row in store.workloads(JobSet)} == {
        one["stored"] for one in samples if one["kind"] == "set"
    }
    store.close()


def test_a_controller_goes_on_with_what_was_asked_of_a_set_before_the_upgrade(old: Old) -> None:
    child = {"set_id": "train", "replicated_job": "w", "job_index": 0}
    old.job_set("train", dump_set(TRAIN))
    old.job("train-w-0", PLAIN, "Waiting", **child)
    changed = {**TRAIN, "metadata": {"name": "train", "labels": {"a": "b"}}}
    for kind, payload in (
        ("set_suspend", ""),
        ("set_update", NOT_A_SPEC),
        ("set_update", dump_set(changed)),
        ("set_resume", ""),
    ):
        old.ask(kind, "train", payload)
    store = old.upgraded()
    assert [one.kind for one in store.requests(limit=9)] == ["update", "release"]
    lab = Lab()
    lab.store = store  # type: ignore[assignment] # one store is as good as another
    lab.restart_controller()
    lab.tick()
    row = store.workload(JobSet, "train")
    wanted = compiled({**changed, "spec": {**TRAIN["spec"], "suspend": False}})
    assert (row.generation, load_set_spec(row.spec)) == (3, wanted)
    assert json.loads(row.manifest)["metadata"]["labels"] == {"a": "b"}
    assert store.job("train-w-0").state is not JobState.WAITING
    store.close()


def test_what_cannot_be_compiled_stops_no_upgrade_and_ends_with_a_reason(old: Old) -> None:
    old.job("good", PLAIN)
    old.job("bad", NOT_A_SPEC, "Running")
    old.insert(
        "attempts", job_id="bad", number=1, status="RUNNING", status_since=1.0, tries=0, dispatch=1, created_at=1.0,
        cpu_m=1, memory=0, gpu=0, message="",
    )  # fmt: skip
    old.insert(
        "runs", uid="bad-1-0-1", job_id="bad", attempt=1, rank=0, dispatch=1, status="RUNNING", status_since=1.0,
        executor="local", node="n0", cpu_m=1, memory=0, gpu=0,
    )  # fmt: skip
    old.job("over", NOT_A_SPEC, "Succeeded")
    old.job_set("set", '{"metadata":{"name":"set"},"spec":{"ttlSecondsAfterFinished":5}}')
    old.job("set-w-0", '{"name":"w","command":["x"]}', "Waiting", set_id="set", replicated_job="w", job_index=0)
    old.ask("set_resume", "set")
    store = old.upgraded()
    jobs = {job_id: store.job(job_id) for job_id in ("good", "bad", "over", "set-w-0")}
    assert [str(job.state) for job in jobs.values()] == ["Queued", "Failed", "Succeeded", "Failed"]
    assert jobs["bad"].spec == NOT_A_SPEC
    for job_id in ("bad", "set-w-0"):
        assert jobs[job_id].reason.startswith("its specification cannot be read by this version of Holdfast: ")
        assert jobs[job_id].ended_at == 2.0
    with pytest.raises(UnreadableSpec):
        load_spec(jobs["bad"].spec)
    assert [one.status for one in store.attempts("bad")] == [AttemptStatus.CANCELLED]
    assert [one.status for one in store.runs("bad")] == [RunStatus.CANCELLED]
    row = store.workload(JobSet, "set")
    assert (row.state.terminal, row.spec, row.state.conditions[0].reason) == ("Failed", "", "UnreadableSpec")
    lab = Lab()
    lab.store = store  # type: ignore[assignment] # one store is as good as another
    lab.restart_controller()
    lab.tick()
    assert store.requests(limit=1) == []
    assert list(lab.controller.state.jobs) == ["good"]
    assert set_spec_of(row) == JobSetSpec(name="set")
    Control(JOB_SETS, store, lab.clock).ask(Act.DELETE, "set")
    lab.tick()
    lab.tick()
    assert store.workloads(JobSet) == []
    store.close()


def entries(old: Old) -> dict[str, dict[str, str]]:
    """Store the samples of a catalogue, and return what is to be stored of them, by kind and name."""
    wanted: dict[str, dict[str, str]] = {"policy": {}, "queue": {}, "category": {}, "settings": {}}
    samples, newer = (json.loads(STORED.with_name(f"catalogue-{version}.json").read_text()) for version in (0, 1))
    for sample, new in zip(
        samples[:-1], newer, strict=False
    ):  # the last are settings as they are before anybody sets any
        kind, body = sample["kind"], sample["stored"]
        name = json.loads(new["stored"])["spec"].get("name", "")
        wanted[kind][name] = new["stored"]
        if kind == "policy":
            old.insert("policy_revisions", name=name, revision=1, body=body)
            old.insert("policies", name=name, revision=1)
        elif kind == "settings":
            with old.database.writing() as connection:
                connection.execute(update(table("settings", column("body"))).values(body=body))
        else:
            old.insert("queues" if kind == "queue" else "categories", name=name, body=body)
    return wanted


def test_the_catalogue_of_the_release_before_is_compiled(old: Old) -> None:
    old.upgrade("0014")
    wanted = entries(old)
    bare = '{"defaultAction":"Retry","name":"bare"}'
    old.insert("policy_revisions", name="bare", revision=2, body=bare)
    store = old.upgraded()
    found = store.catalogue()
    assert found.unreadable == {}
    then = {name: load_entry(RetryPolicy, body) for name, body in wanted["policy"].items()}
    assert {name: evolve(policy, revision=1) for name, policy in found.policies.items()} == {
        name: evolve(as_named_now(policy), revision=1) for name, policy in then.items()
    }
    assert store.policy_revision("infra", 1) == then["infra"], "decisions that name it find it as it was"
    assert {name: dump_entry(found.queues[name]) for name in found.queues if name != "default"} == wanted["queue"]
    assert {each.name: dump_entry(each) for each in found.categories} == wanted["category"]
    assert dump_entry(OperatorSettings(found.settings, found.default_policy)) == wanted["settings"][""]
    assert store.policy_revision("bare", 2) == RetryPolicy("bare", default_action=Action.RETRY, revision=2)
    assert store.put_policy(found.policies["infra"]).revision == 2
    store.close()


UNREADABLE = ("not JSON", '{"version":2,"spec":{"name":"x"}}', '{"version":1,"spec":{"name":7,"settings":7}}')


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_entry_that_cannot_be_read_keeps_no_controller_from_working_until_it_is_written_again(
    old: Old, text: str
) -> None:
    old.upgrade("0014")
    entries(old)
    for name in ("policy_revisions", "queues", "categories", "settings"):
        with old.database.writing() as connection:
            connection.execute(update(table(name, column("body"))).values(body=text))
    store = old.upgraded()
    before = store.catalogue()
    listed = ["failure category cuda", "queue cpu", "queue gpu", "retry policy bare", "retry policy infra", "settings"]
    assert sorted(before.unreadable) == listed
    assert all("stored" in why for why in before.unreadable.values())
    lab = Lab()
    lab.store = store  # type: ignore[assignment] # one store is as good as another
    lab.restart_controller()
    lab.submit(job_named("held", retry_policies=("infra",)), exits(1))
    lab.submit(job_named("waiting", queue="gpu"), exits(0))
    lab.submit(job_named("fine"), exits(0))
    lab.pass_s(10.0)
    found = {job.name: job for job in store.jobs(JobFilter())}
    assert [str(found[name].state) for name in ("held", "waiting", "fine")] == ["Held", "Queued", "Succeeded"]
    assert "retry policy 'infra' cannot be read" in found["held"].reason
    store.put_settings(RetrySettings(), None)
    store.put_queue(evolve(before.queues["gpu"], paused=True))
    store.put_category(before.categories[0])
    assert store.put_policy(evolve(before.policies["infra"], retry_limit=3)).revision == 2
    assert sorted(store.catalogue().unreadable) == ["queue cpu", "retry policy bare"]
    store.delete_queue("cpu")
    store.delete_policy("bare")
    assert store.catalogue().unreadable == {}
    store.close()
