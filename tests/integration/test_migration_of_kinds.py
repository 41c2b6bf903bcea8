"""After an upgrade each job says what kind it is, which no one reads from its specification any more."""

from __future__ import annotations

from holdfast.compiled.codec import dump_spec
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import GANG, KUBEJOB
from holdfast.domain.workloads.kubejob.model import KubeJobSpec
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.spec import JobSpec, KubeJob
from holdfast.ports.store import JobFilter
from tests.integration.test_migration_of_specs import PLAIN, Old, old

__all__ = ["old"]
GANG_SPEC = JobSpec("g", ("true",), env={"kube": "not a Kubernetes Job"})
POD_SPEC = evolve(GANG_SPEC, kube=KubeJob(KubeJobSpec(), Program(), {}))
MORE_THAN_A_PAGE = 1_001


def test_jobs_of_sets_and_kubernetes_jobs_are_made_of_pods_and_all_others_are_gangs(old: Old) -> None:
    old.job("of-set", PLAIN, "Waiting", set_id="s", replicated_job="w", job_index=0)
    old.job("task", PLAIN, set_id="a", replicated_job="", job_index=3)
    old.job("plain", PLAIN)
    old.upgrade("0036")
    specs = {"gang": dump_spec(GANG_SPEC), "pods": dump_spec(POD_SPEC), "broken": '{"kube":'}
    for name, body in specs.items():
        old.job(name, body)
    old.job("pods-of-an-array", dump_spec(evolve(POD_SPEC, name="t")), set_id="a", replicated_job="", job_index=4)
    store = old.upgraded()
    found = store.jobs(JobFilter(tasks=True))
    store.close()
    assert {job.id: job.kind for job in found} == {
        "of-set": KUBEJOB,
        "task": GANG,
        "plain": GANG,
        "gang": GANG,
        "pods": KUBEJOB,
        "broken": GANG,
        "pods-of-an-array": KUBEJOB,
    }


def test_kubernetes_jobs_beyond_the_first_page_are_found(old: Old) -> None:
    old.upgrade("0036")
    for number in range(MORE_THAN_A_PAGE):
        old.insert("specs", digest=f"{number:06}".encode(), body=dump_spec(evolve(POD_SPEC, name=f"n{number}")))
    old.job("zzz-last", dump_spec(evolve(POD_SPEC, name="last")))
    store = old.upgraded()
    (job,) = store.jobs(JobFilter())
    store.close()
    assert job.kind == KUBEJOB
