"""Requests about one job set that come faster than the controller acts: the order of acceptance decides, or If-Match.

The controller acts only when the lab lets time pass, so what is sent in a row here is always too fast for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.client import Client
from holdfast.errors import Conflict, NotFound, VersionConflict
from tests.unit.jobset_lab import SetLab, group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx


TWO = manifest(replicatedJobs=[group("driver"), group("workers", 2)])
SUSPENDED = {**TWO, "spec": {**TWO["spec"], "suspend": True}}
SET = "/api/v1/jobsets/train"
STALE = '"id00000001.0"'


def test_of_two_quick_changes_the_later_one_wins_also_when_it_is_the_original(client: Client, lab: SetLab) -> None:
    client.put_job_set("train", TWO)
    lab.pass_s(2)
    assert client.put_job_set("train", SUSPENDED).result == "updated"
    assert client.put_job_set("train", TWO).result == "updated"
    lab.pass_s(30)
    found = client.job_set("train")
    assert (found.suspend, found.state, found.generation) == (False, "Running", 3)


@pytest.mark.parametrize("then", [Client.resume_job_set, Client.suspend_job_set])
def test_a_change_after_suspend_or_resume_counts_although_it_is_what_is_in_force(
    client: Client, lab: SetLab, then: Callable[[Client, str], object]
) -> None:
    begun = SUSPENDED if then is Client.resume_job_set else TWO
    client.put_job_set("train", begun)
    lab.pass_s(2)
    then(client, "train")
    assert client.put_job_set("train", begun).result == "updated"
    lab.pass_s(30)
    assert client.job_set("train").suspend is (begun is SUSPENDED)


def test_a_change_equal_to_the_one_accepted_last_is_none(client: Client, lab: SetLab) -> None:
    client.put_job_set("train", TWO)
    lab.pass_s(2)
    first = client.put_job_set("train", SUSPENDED)
    again = client.put_job_set("train", SUSPENDED)
    assert (again.result, again.resource_version) == ("unchanged", first.resource_version)
    lab.pass_s(30)
    assert client.job_set("train").generation == 2


def test_a_set_reads_as_it_was_accepted_and_its_state_as_it_is(client: Client, lab: SetLab) -> None:
    client.put_job_set("train", TWO)
    lab.pass_s(2)
    client.put_job_set("train", SUSPENDED)
    view, (listed,) = client.job_set("train"), client.job_sets()
    assert (view.manifest["spec"]["suspend"], view.suspend, view.generation) == (True, True, 2)
    assert view.state == listed.state == "Running"
    assert listed.resource_version == view.resource_version
    assert client.job_set_why("train").headline == "Job set train is running."


def test_a_template_changed_with_the_suspension_can_be_resumed_at_once(client: Client, lab: SetLab) -> None:
    changed = manifest(replicatedJobs=[group("driver"), group("workers", 2)], suspend=True)
    for one in changed["spec"]["replicatedJobs"]:
        one["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "n0"}
    client.put_job_set("train", TWO)
    lab.pass_s(2)
    client.put_job_set("train", changed)
    resumed = {**changed, "spec": {**changed["spec"], "suspend": False}}
    assert client.put_job_set("train", resumed).result == "updated"
    lab.pass_s(30)
    assert client.job_set("train").manifest["spec"] == resumed["spec"]


def test_a_set_whose_deletion_was_accepted_takes_nothing_more(client: Client, lab: SetLab) -> None:
    client.put_job_set("train", TWO)
    lab.pass_s(2)
    client.delete_job_set("train")
    calls: list[Callable[[], object]] = [
        lambda: client.put_job_set("train", TWO),
        lambda: client.put_job_set("train", SUSPENDED),
        lambda: client.create_job_set(TWO),
        lambda: client.suspend_job_set("train"),
        lambda: client.restart_job_set("train"),
    ]
    for refused in calls:
        with pytest.raises(Conflict, match="is being deleted"):
            refused()
    assert client.job_set("train").state == "Deleting"
    lab.pass_s(60)
    assert client.put_job_set("train", TWO).result == "created"
    lab.pass_s(60)
    assert client.job_set("train").state == "Running"


def test_every_answer_about_a_set_carries_its_version(http: httpx.Client, lab: SetLab) -> None:
    created = http.put(SET, json=TWO)
    versions = [created.json()["resource_version"]]
    assert created.headers["etag"] == f'"{versions[0]}"'
    lab.pass_s(2)
    calls: list[tuple[str, str, object]] = [
        ("PUT", "", SUSPENDED),
        ("POST", "/resume", None),
        ("POST", "/restart", None),
        ("POST", "/suspend", None),
        ("DELETE", "", None),
    ]
    for method, path, body in calls:
        answer = http.request(method, SET + path, json=body)
        version = answer.json()["resource_version"]
        assert answer.headers["etag"] == f'"{version}"'
        assert version not in versions
        versions.append(version)
        read = http.get(SET)
        assert (read.json()["resource_version"], read.headers["etag"]) == (version, f'"{version}"')
        assert [one["resource_version"] for one in http.get("/api/v1/jobsets").json()["items"]] == [version]


def test_what_the_controller_does_with_a_set_leaves_its_version(client: Client, lab: SetLab) -> None:
    created = client.put_job_set("train", TWO)
    lab.pass_s(2)
    asked = client.suspend_job_set("train")
    lab.pass_s(30)
    assert created.resource_version != asked.resource_version == client.job_set("train").resource_version


CALLS: list[tuple[str, str, object]] = [
    ("PUT", "", SUSPENDED),
    ("PUT", "", TWO),
    ("PUT", "?dry_run=true", SUSPENDED),
    ("DELETE", "", None),
    ("POST", "/suspend", None),
    ("POST", "/resume", None),
    ("POST", "/restart", {"replicated_job": "workers"}),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_what_has_changed_since_is_not_changed(
    http: httpx.Client, lab: SetLab, method: str, path: str, body: object
) -> None:
    first = http.put(SET, json=TWO).headers["etag"]
    lab.pass_s(2)
    now = http.post(f"{SET}/restart").json()["resource_version"]
    asked = len(lab.store.requests(limit=9))
    for stale in (first, STALE, '"", W/"x"'):
        refused = http.request(method, SET + path, json=body, headers={"If-Match": stale})
        problem = refused.json()
        assert (refused.status_code, problem["code"], problem["resource_version"]) == (409, "version_conflict", now)
    assert len(lab.store.requests(limit=9)) == asked
    outcome = lab.store.audit(limit=9)[-1].entry.outcome
    assert outcome == ("accepted" if "dry_run" in path else "version_conflict"), "a dry run is nobody's act"


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
@pytest.mark.parametrize("how", ["{}", "W/{}", '"other", {}', "*"])
def test_what_is_as_its_caller_knows_it_is_changed(
    http: httpx.Client, lab: SetLab, method: str, path: str, body: object, how: str
) -> None:
    tag = http.put(SET, json=TWO).headers["etag"]
    lab.pass_s(2)
    answer = http.request(method, SET + path, json=body, headers={"If-Match": how.format(tag)})
    assert answer.is_success, answer.text


@pytest.mark.parametrize("tag", ["1", '"open', "", '"a b"', '"a",', '*, "a"'])
def test_what_is_no_entity_tag_is_refused(http: httpx.Client, tag: str) -> None:
    http.put(SET, json=TWO)
    refused = http.delete(SET, headers={"If-Match": tag})
    assert (refused.status_code, refused.json()["errors"][0]["path"]) == (422, "header.If-Match")


@pytest.mark.parametrize("tag", [STALE, "*"])
def test_a_version_of_what_is_not_there_creates_nothing(http: httpx.Client, tag: str) -> None:
    assert http.put(SET, json=TWO, headers={"If-Match": tag}).status_code == 404


def test_a_set_of_the_same_name_has_none_of_the_versions_of_the_one_before(client: Client, lab: SetLab) -> None:
    old = client.put_job_set("train", TWO).resource_version
    lab.pass_s(2)
    client.delete_job_set("train")
    lab.pass_s(60)
    with pytest.raises(NotFound):
        client.put_job_set("train", TWO, if_match=old)
    client.put_job_set("train", TWO)
    with pytest.raises(VersionConflict):
        client.delete_job_set("train", if_match=old)


def test_the_client_says_which_version_it_means_and_learns_which_one_there_is(client: Client, lab: SetLab) -> None:
    version = client.put_job_set("train", TWO).resource_version
    lab.pass_s(2)
    version = client.put_job_set("train", SUSPENDED, if_match=version).resource_version
    with pytest.raises(VersionConflict) as caught:
        client.put_job_set("train", TWO, if_match="old")
    assert caught.value.current == version
    version = client.resume_job_set("train", if_match=version).resource_version
    version = client.restart_job_set("train", if_match=version).resource_version
    version = client.suspend_job_set("train", if_match=version).resource_version
    assert client.delete_job_set("train", if_match=version).deleting
