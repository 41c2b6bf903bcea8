"""Tokens for the work of one place: what programs with one submit, find and steer, and what they are told."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import Forbidden, InvalidManifest, InvalidRequest, NotFound
from holdfast.service.access.book import FRESH_S
from tests.integration.test_api_tokens import JOB, QUEUE, Lab
from tests.unit.jobset_lab import group, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

ARRAY = {**JOB, "name": "sweep", "array": {"indices": "0-1"}}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(tmp_path / "holdfast.db", stack)


def _set(name: str, of: str = "", queue: str = "") -> dict[str, Any]:
    document = manifest(name, replicatedJobs=[group("w", 1)])
    document["metadata"] |= {"annotations": {"holdfast.dev/group": of}} if of else {}
    document["metadata"] |= {"labels": {"holdfast.dev/queue": queue}} if queue else {}
    return document


def _names(client: Client) -> list[str]:
    jobs, arrays, sets = client.jobs(tasks=False), client.arrays(), client.job_sets()
    return sorted([*(one.name for one in jobs), *(one.name for one in arrays), *(one.name for one in sets)])


def test_a_job_submits_below_its_own_name_and_reads_and_steers_what_is_there(lab: Lab) -> None:
    ann = lab.client(lab.made("all", user="ann").token)
    ann.submit({**JOB, "name": "other", "group": "flows/70"})
    ann.submit({**JOB, "name": "before", "group": "flows/7/a"})
    flow = lab.client(lab.made("flow", user="ann", scopes=["submit,watch,cancel@job:group=flows/7/"]).token)
    flow.submit({**JOB, "name": "child", "group": "flows/7/b", "dependsOn": ["before"]})
    flow.submit_array({**ARRAY, "group": "flows/7/b/c"})
    flow.create_job_set(_set("set", "flows/7/b"))
    assert _names(flow) == ["before", "child", "set", "set-w-0", "sweep"]
    assert {one.group for one in flow.jobs(group="flows/")} == {"flows/7/a", "flows/7/b"}
    flow.cancel("before")
    flow.cancel_array("sweep")
    for elsewhere in ({}, {"group": "flows"}, {"group": "flows/70"}, {"group": "flows/7x"}, {"group": "Flows/7/a"}):
        with pytest.raises(Forbidden, match=r"ann may not submit jobs to queue default and .*group.* with this token"):
            flow.submit({**JOB, "name": "no", **elsewhere})
        with pytest.raises(Forbidden, match="ann may not submit arrays to queue default"):
            flow.submit_array({**ARRAY, "name": "no", **elsewhere})
        with pytest.raises(Forbidden, match="ann may not submit job sets to queue default"):
            flow.create_job_set(_set("no", elsewhere.get("group", "")))
        with pytest.raises(Forbidden, match="ann may not submit jobs"):
            flow.check([{**JOB, "name": "no", **elsewhere}])
    with pytest.raises(NotFound) as caught:
        flow.cancel("other")
    assert caught.value.hint == ("it may be outside this token's scope: submit,watch,cancel@job:group=flows/7/")
    with pytest.raises(InvalidManifest) as told:
        flow.submit({**JOB, "name": "no", "dependsOn": ["other"], "group": "flows/7/b"})
    assert told.value.problems[0].message == "no job, array or job set has the id or name 'other'"


def test_a_queue_is_meant_by_its_whole_name(lab: Lab) -> None:
    for name in ("gpu", "gpu2", "gp"):
        lab.admin.queues.create({**QUEUE, "metadata": {"name": name}})
    for name in ("gpu", "gpu2", "gp"):
        lab.admin.submit({**JOB, "name": name, "queue": name})
        lab.admin.submit_array({**ARRAY, "name": f"a-{name}", "queue": name})
        lab.admin.create_job_set(_set(f"s-{name}", queue=name))
    ops = lab.client(lab.made("ops", user="ops", scopes=["watch,cancel,reprioritize@job:queue=gpu"]).token)
    assert [one.name for one in ops.jobs(tasks=False)] == ["gpu", "s-gpu-w-0"]
    assert [one.name for one in ops.arrays()] == ["a-gpu"]
    assert [one.name for one in ops.job_sets()] == ["s-gpu"]
    with pytest.raises(NotFound):
        ops.cancel_array("a-gpu2")
    ops.cancel_array("a-gpu")
    assert ops.reprioritize_many(7, ids=[one.id for one in lab.admin.jobs()]) == 2
    with pytest.raises(Forbidden, match="may not preempt jobs"):
        ops.preempt("gpu")
    with pytest.raises(Forbidden, match="its scope is watch,cancel,reprioritize@job:queue=gpu"):
        ops.submit({**JOB, "queue": "gpu"})


def test_of_many_jobs_the_missing_right_is_named_and_none_is_touched(lab: Lab) -> None:
    ann = lab.client(lab.made("all", user="ann").token)
    for name, of in (("in", "a/1"), ("out", "b/1")):
        ann.submit({**JOB, "name": name, "group": of})
    half = lab.client(lab.made("half", user="ann", scopes=["watch@job", "cancel,reprioritize@job:group=a/"]).token)
    with pytest.raises(Forbidden, match="ann may not reprioritize this job with this token: its scope is watch@job "):
        half.reprioritize_many(7, queue="default")
    with pytest.raises(Forbidden, match="ann may not cancel this job with this token"):
        half.cancel("out")
    assert {(one.state, one.priority) for one in ann.jobs()} == {("Queued", 0)}
    assert half.reprioritize_many(7, group="a/") == 1
    refusals = [one for one in lab.admin.audit() if one.outcome == "forbidden"]
    assert {(one.actor, one.action, one.kind) for one in refusals} == {
        ("ann", "cancel", "job"),
        ("ann", "reprioritize", "job"),
    }


def test_of_jobs_of_one_name_the_one_is_meant_that_the_token_is_for(lab: Lab) -> None:
    ann = lab.client(lab.made("all", user="ann").token)
    inside = ann.submit({**JOB, "group": "a"}).id
    ann.submit({**JOB, "group": "b"})
    scoped = lab.client(lab.made("a", user="ann", scopes=["*@job:group=a"]).token)
    assert scoped.job("train").id == inside
    blind = lab.client(lab.made("blind", user="ann", scopes=["cancel@job:group=a"]).token)
    assert blind.cancel("train").id == inside
    with pytest.raises(Forbidden, match="may not watch jobs with this token"):
        [*blind.jobs()]


def test_sums_and_streams_have_what_the_token_is_for(lab: Lab) -> None:
    ann = lab.client(lab.made("all", user="ann").token)
    inside = ann.submit({**JOB, "name": "in", "group": "a/1"}).id
    ann.submit({**JOB, "name": "out", "group": "b/1"})
    lab.admin.submit({**JOB, "name": "theirs", "group": "a/2"})
    scopes = ["watch@job:group=a/"]
    scoped = lab.client(lab.made("a", user="ann", scopes=scopes).token)
    boss = lab.client(lab.made("boss", scopes=scopes).token)
    assert scoped.overview().jobs == boss.overview().jobs == {"Queued": 2}
    assert {one.subject for one in scoped.events()} == {one.subject for one in boss.events()}
    assert f"jobs/{inside}" in {one.subject for one in boss.events()}
    lab.admin.put_settings({"access": {"operator": ["user:ops"]}, "othersSee": "nothing"})
    lab.clock.time += FRESH_S
    assert [one.name for one in scoped.jobs()] == ["in"]
    assert [one.name for one in boss.jobs()] == ["in", "theirs"]
    assert scoped.overview().jobs == {"Queued": 1}


def test_a_token_of_a_place_opens_nothing_once_it_has_expired_or_was_revoked_and_makes_no_other(lab: Lab) -> None:
    short = lab.made("short", user="ann", scopes=["*@job:queue=default"], expires_s=60)
    client = lab.client(short.token)
    assert short.scopes == ["*@job:queue=default"]
    assert [one.scopes for one in lab.admin.tokens()] == [["*@job:queue=default"]]
    client.submit(JOB)
    with pytest.raises(Forbidden):
        client.create_token("more")
    lab.admin.revoke_token("short")
    lab.clock.time += FRESH_S
    with pytest.raises(Exception, match="was revoked"):
        client.submit(JOB)
    with pytest.raises(InvalidRequest) as caught:
        lab.admin.create_token("t", scopes=["watch@queue:queue=gpu", "watch@job:gpu"])
    assert [(one.path, one.allowed) for one in caught.value.problems] == [
        ("scopes[0]", ("job", "array", "job-set")),
        ("scopes[1]", ("queue=NAME", "group=GROUP", "group=GROUP/")),
    ]
