"""Groups keep together what belongs together: found, followed and steered by one text, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import InvalidManifest
from tests.integration.test_whose_it_is import ANN, ARRAY, JOB, KUBE, known_as
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client import Client
    from holdfast.domain.access import Principal
    from tests.unit.jobset_lab import SetLab

__all__ = ["known_as"]
NAME = "sweeps/7"


def annotated(document: dict[str, Any], name: str = NAME) -> dict[str, Any]:
    metadata = {**document["metadata"], "annotations": {"holdfast.dev/group": name}}
    return {**document, "metadata": metadata}


def test_everything_is_in_the_group_it_names_with_all_its_jobs(
    lab: SetLab, known_as: Callable[[Principal], Client]
) -> None:
    client = known_as(ANN)
    job = client.submit({**JOB, "group": NAME})
    array = client.submit_array({**ARRAY, "group": NAME})
    upstream = client.create_job_set(annotated(manifest("set", replicatedJobs=[group("w", 2)])))
    short = {"name": "w", "command": ["true"]}
    native = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "native"}}
    own = client.create_job_set({**native, "spec": {"group": NAME, "jobs": [short]}})
    kube = client.put_job("batch", annotated(KUBE))
    client.submit({**JOB, "group": "sweeps/70"})
    lab.pass_s(3.0)
    assert {one.group for one in (job, array, upstream, own, kube)} == {NAME}
    names = {"train", "sweep-0", "sweep-1", "set-w-0", "set-w-1", "native-w-0", "batch"}
    assert {one.name for one in client.jobs(group=NAME)} == names
    assert {one.name for one in client.jobs(group="sweeps/")} == names
    assert len([*client.jobs(group="sweeps/")]) == len(names) + 1, "sweeps/70 is below sweeps, and not in sweeps/7"
    assert [one.name for one in client.arrays(group=NAME)] == ["sweep"]
    assert [one.name for one in client.job_sets(group="sweeps/")] == ["native", "set"]
    assert [*client.arrays(group="sweeps")] == [] == [*client.job_sets(group="sweep")]


def test_the_events_of_a_group_are_those_of_its_jobs_and_go_on_where_they_were_left(
    lab: SetLab, known_as: Callable[[Principal], Client]
) -> None:
    client = known_as(ANN)
    first = client.submit({**JOB, "group": NAME})
    client.submit(JOB)
    last = [*client.events(group=NAME)][-1]
    lab.pass_s(3.0)
    client.cancel(first.id)
    lab.pass_s(3.0)
    later = [*client.events(group="sweeps/", after=int(last.id))]
    assert {one.subject for one in later} == {f"jobs/{first.id}"}
    assert next(one.type for one in client.events(group=NAME)) == "dev.holdfast.job.submitted.v1"
    assert int(later[0].id) > int(last.id)


def test_a_group_of_more_than_1023_characters_is_refused_and_one_of_that_many_is_kept(
    known_as: Callable[[Principal], Client],
) -> None:
    client = known_as(ANN)
    longest = "é" * 1023
    assert client.submit({**JOB, "group": longest}).group == longest
    assert [one.group for one in client.jobs(group=longest)] == [longest]
    with pytest.raises(InvalidManifest, match="group"):
        client.submit({**JOB, "group": longest + "x"})


def test_each_event_says_of_which_group_it_is_also_those_of_a_job_set_that_is_gone(
    lab: SetLab, known_as: Callable[[Principal], Client]
) -> None:
    client = known_as(ANN)
    client.submit({"name": "alone", "command": ["true"]})
    client.submit({**JOB, "group": NAME})
    client.submit_array({**ARRAY, "group": NAME})
    client.create_job_set(annotated(manifest("set", replicatedJobs=[group("w")])))
    lab.pass_s(3.0)
    client.delete_job_set("set")
    client.delete_array("sweep")
    lab.pass_s(3.0)
    told = [*client.events(group=NAME)]
    ours = {f"jobs/{one.id}" for one in client.jobs(group=NAME)} | {"jobsets/set", "arrays/sweep"}
    everything = [*client.events()]
    assert [one.id for one in told] == [one.id for one in everything if one.subject in ours]
    assert {one.group for one in everything if one.subject in ours} == {NAME}
    assert {one.group for one in everything if one.subject not in ours} == {""}
    kinds = {one.type for one in told}
    assert {f"dev.holdfast.{one}.v1" for one in ("jobset.created", "jobset.deleted", "array.deleted")} <= kinds
    half = int(told[len(told) // 2].id)
    assert [one.id for one in client.events(group=NAME, after=half)] == [one.id for one in told if int(one.id) > half]


@pytest.mark.parametrize(
    ("name", "why"), [("x" * 1024, "1024 characters long"), ("", "must not be empty"), ("a\nb", "control characters")]
)
def test_a_group_that_is_not_a_line_of_text_is_refused_in_every_form(
    known_as: Callable[[Principal], Client], name: str, why: str
) -> None:
    client = known_as(ANN)
    with pytest.raises(InvalidManifest, match=why) as refused:
        client.submit({**JOB, "group": name})
    assert [one.path for one in refused.value.problems] == ["group"]
    for send in (
        lambda: client.put_job("batch", annotated(KUBE, name)),
        lambda: client.create_job_set(annotated(manifest("set", replicatedJobs=[group("w")]), name)),
    ):
        with pytest.raises(InvalidManifest, match=why) as refused:
            send()
        assert [one.path for one in refused.value.problems] == ["metadata.annotations.holdfast.dev/group"]


def test_the_group_of_a_job_set_never_changes(known_as: Callable[[Principal], Client]) -> None:
    client = known_as(ANN)
    upstream = manifest("set", replicatedJobs=[group("w")])
    client.create_job_set(annotated(upstream))
    native = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "own"}}
    client.create_job_set({**native, "spec": {"group": NAME, "jobs": [{"name": "w", "command": ["true"]}]}})
    with pytest.raises(InvalidManifest, match="immutable"):
        client.put_job_set("set", annotated(upstream, "other"))
    with pytest.raises(InvalidManifest, match="immutable"):
        client.put_job_set("own", {**native, "spec": {"jobs": [{"name": "w", "command": ["true"]}]}})
    assert {one.group for one in client.job_sets()} == {NAME}
