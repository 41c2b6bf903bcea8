"""Pods ask for what is counted by a name, as jobs do: what nodes or the cluster offer, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.manifests import Reading, read_one
from holdfast.domain.containers import Capability, EngineInfo
from holdfast.domain.job import Resources
from holdfast.domain.workloads.jobset.model import JobSetSpec
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.job import Amounts

OFFERS = frozenset({"licence/matlab", "token/s3", "scratch"})


def engines() -> list[EngineInfo]:
    return [EngineInfo("process", offers=OFFERS)]


def of_pod(*containers: dict[str, Any], init: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    document = manifest(replicatedJobs=[group("w", 1)])
    pod = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    named = [{"name": f"c{place}", "command": ["true"], "resources": one} for place, one in enumerate(containers)]
    pod["containers"] = named
    pod["initContainers"] = [{"name": f"i{n}", "command": ["true"], "resources": one} for n, one in enumerate(init)]
    return document


def read(document: dict[str, Any], *, lenient: bool = False) -> Reading:
    return read_one(document, lenient=lenient, engines=engines)


def asked(document: dict[str, Any], *, lenient: bool = False) -> Resources:
    spec = read(document, lenient=lenient).manifest
    assert isinstance(spec, JobSetSpec)
    return spec.replicated_jobs[0].program.resources


@pytest.mark.parametrize(
    ("resources", "named"),
    [
        ({"requests": {"licence/matlab": 1}}, (("licence/matlab", 1000),)),
        ({"limits": {"licence/matlab": "2"}}, (("licence/matlab", 2000),)),
        ({"requests": {"token/s3": "500m", "scratch": "20Gi"}}, (("scratch", 20_000 << 30), ("token/s3", 500))),
        ({"requests": {"licence/matlab": 0}}, ()),
    ],
)
def test_a_pod_asks_for_what_is_offered_by_name(resources: dict[str, Any], named: Amounts) -> None:
    assert asked(of_pod(resources)).named == named


def test_containers_ask_for_it_together_and_one_that_runs_before_them_alone() -> None:
    one, two, six = ({"requests": {"licence/matlab": count}} for count in (1, 2, 6))
    several = [EngineInfo("pods", frozenset(Capability), OFFERS)]
    for init, most in ([one], 3000), ([six], 6000):
        spec = read_one(of_pod(one, two, init=init), engines=lambda: several).manifest
        assert isinstance(spec, JobSetSpec)
        assert spec.replicated_jobs[0].program.resources.named == (("licence/matlab", most),)


def test_the_short_form_asks_for_it_as_a_job_does() -> None:
    job = {"name": "w", "command": ["true"], "resources": {"cpu": 1, "licence/matlab": 0.5, "scratch": "1Gi"}}
    document = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "s"}, "spec": {"jobs": [job]}}
    named = (("licence/matlab", 500), ("scratch", 1000 << 30))
    assert asked(document) == Resources(1000, named=named)


def test_a_mistake_in_the_short_form_is_at_the_resources_of_its_job() -> None:
    job = {"name": "w", "command": ["true"], "resources": {"licence/maple": 1}}
    document = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "s"}, "spec": {"jobs": [job]}}
    assert [problem.path for problem in read(document).problems] == ["spec.jobs[0].resources"]


@pytest.mark.parametrize(
    ("name", "hint"), [("licence/matlb", "did you mean licence/matlab?"), ("disk", "HOLDFAST_RESOURCES")]
)
def test_what_nobody_has_is_refused_with_what_there_is_and_ignored_by_a_lenient_reader(name: str, hint: str) -> None:
    document = of_pod({"requests": {name: 1}})
    (problem,) = read(document).problems
    assert problem.path.endswith("containers[0].resources")
    assert problem.message == f"Invalid value: {name}: engine process offers no such resource"
    assert set(problem.allowed) == {"cpu", "memory", "nvidia.com/gpu", *OFFERS}
    assert hint in str(problem.hint)
    assert asked(document, lenient=True).named == ()
