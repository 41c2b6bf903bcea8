"""What was counted by the places of rules is counted by their content after an upgrade, and nothing is lost."""

from __future__ import annotations

import json

from sqlalchemy import column, table, update

from holdfast.compiled.codec import dump_entry, dump_spec
from holdfast.compiled.workloads import dump_state
from holdfast.domain.policy.identity import content_name
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord, PodRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.ports.store import JobFilter
from tests.integration.test_migration_of_specs import PLAIN, Old, old

__all__ = ["old"]
OOM = Rule(Action.RETRY, "rule0", conditions=frozenset({"OOMKilled"}), retry_limit=3)
MINE = Rule(Action.RETRY, "mine", conditions=frozenset({"Evicted"}))
CUDA = Rule(Action.RETRY, "rule2", categories=frozenset({"cuda"}))
POLICY = RetryPolicy("infra", (OOM, MINE, CUDA, evolve(CUDA, name="rule3")), retry_limit=5, revision=3)
GIVEN = RetryPolicy("given", (MINE, evolve(OOM, name="rule7")))
COUNTED = {"infra/rule0": 2, "infra/mine": 1, "infra/rule2": 4, "infra/rule3": 1, "infra/default": 5, "given/rule7": 6}
OOM_NAME, CUDA_NAME = content_name(OOM), content_name(CUDA)
RENAMED = {
    f"infra/{OOM_NAME}": 2,
    "infra/mine": 1,
    f"infra/{CUDA_NAME}": 4,
    f"infra/{CUDA_NAME}-2": 1,
    "infra/default": 5,
    "given/rule7": 6,
}


def change(old: Old, name: str, row_id: str, **values: object) -> None:
    shape = table(name, column("id"), *map(column, values))
    with old.database.writing() as connection:
        connection.execute(update(shape).where(shape.c.id == row_id).values(values))


def before(old: Old) -> None:
    """Make a database of then: two jobs that were retried, one by a policy of its own, and one of pods."""
    for job_id in ("named", "own"):
        old.job(job_id, PLAIN)
    old.upgrade("0034")
    for policy in (evolve(POLICY, revision=1, rules=(OOM,)), evolve(POLICY, revision=2), POLICY, GIVEN):
        old.insert("policy_revisions", name=policy.name, revision=policy.revision, body=dump_entry(policy))
    for policy in (POLICY, GIVEN):
        old.insert("policies", name=policy.name, revision=policy.revision)
    old.insert("specs", digest=b"its-own", body=dump_spec(JobSpec("own", ("true",), inline_policies=(POLICY,))))
    change(old, "jobs", "own", spec=b"its-own", counters=json.dumps(COUNTED))
    change(old, "jobs", "named", counters=json.dumps(COUNTED))
    state = dump_state(KubeJobRecord(id="named", pods=(PodRecord("w-0-0", 0, counters=COUNTED),)))
    old.insert(
        "workloads", id="named", kind="kubejob", generation=1, spec="{}", manifest="{}", deleting=False, version=1,
        created_at=1.0, updated_at=1.0, state=state,
    )  # fmt: skip


def test_counters_follow_rules_to_their_new_names(old: Old) -> None:
    before(old)
    store = old.upgraded()
    found = {job.id: dict(job.counters) for job in store.jobs(JobFilter())}
    assert found == {"named": RENAMED, "own": COUNTED}, "what stands in a job is stored with it, and keeps its names"
    record = store.workload(KubeJobRecord, "named")
    assert record is not None
    assert dict(record.pods[0].counters) == RENAMED
    policies = store.catalogue().policies
    assert [rule.name for rule in policies["infra"].rules] == [OOM_NAME, "mine", CUDA_NAME, f"{CUDA_NAME}-2"]
    assert (policies["infra"].revision, policies["given"]) == (4, GIVEN)
    assert store.policy_revision("infra", 3) == POLICY, "decisions that were made by it find it as it was"
    assert store.put_policy(evolve(policies["infra"], retry_limit=9)).revision == 5
    store.close()


def test_a_database_without_such_rules_is_left_as_it_is(old: Old) -> None:
    old.upgrade("0034")
    old.insert("policy_revisions", name="given", revision=1, body=dump_entry(GIVEN))
    old.insert("policies", name="given", revision=1)
    store = old.upgraded()
    assert store.catalogue().policies == {"given": GIVEN}
    store.close()
